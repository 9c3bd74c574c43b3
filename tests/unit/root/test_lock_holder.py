"""The holders of locks, read from the kernel once for many files."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.waiting import until

from septet.system.lock_holder import holder_of, read_lock_holders, stopped_holder
from septet.system.locks import lock

pytestmark = pytest.mark.needs("Linux")
HOLDS = """
import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""


def test_one_reading_tells_the_holders_of_all_locks(tmp_path: Path) -> None:
    """One reading names this process as the holder of two locks, and the process is not stopped."""
    paths = [tmp_path / "one", tmp_path / "two"]
    files = [path.open("w") for path in paths]
    for file in files:
        lock(file.fileno())
    holders = read_lock_holders()
    for path in paths:
        assert os.getpid() in holders[path.stat().st_ino]
        assert stopped_holder(path, holders) is None
        assert f"process {os.getpid()}" in holder_of(path)
    for file in files:
        file.close()


def test_a_stopped_process_is_told_as_the_holder(tmp_path: Path) -> None:
    """A stopped process is named as a lock's stopped holder; a running process and a free lock are not."""
    path = tmp_path / "held"
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(path)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert stopped_holder(path, read_lock_holders()) is None
        other.send_signal(signal.SIGSTOP)
        found = until(lambda: stopped_holder(path, read_lock_holders()))
        assert found.pid == other.pid
        other.kill()
    assert stopped_holder(path, read_lock_holders()) is None
    assert holder_of(path) == ""
