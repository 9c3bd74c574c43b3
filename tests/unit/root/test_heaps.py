"""The threads of a serving process allocate from two heaps."""

import subprocess
import sys

from septet.system.own_process import HEAPS

_THREADS = 12
_PROGRAM = f"""
import ctypes, sys, threading
from septet.system.own_process import share_heaps

if sys.argv[1] == "shared":
    share_heaps()
all_run = threading.Barrier({_THREADS})

def allocate():
    kept = bytes(100_000)
    all_run.wait()

threads = [threading.Thread(target=allocate) for _ in range({_THREADS})]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
libc.malloc_info(0, ctypes.c_void_p(libc.fdopen(1, b"w")))
libc.fflush(None)
"""


def _heaps_of(how: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, how], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.count("<heap nr=")


def test_threads_of_a_process_that_serves_share_two_heaps() -> None:
    assert _heaps_of("shared") == HEAPS < _heaps_of("own")
