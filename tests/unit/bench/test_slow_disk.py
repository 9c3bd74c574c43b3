"""The slow disk of the chaos program."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.chaos import slow_disk
from bench.chaos.processes import Pid

SYNCS = """\
import os, sys
with open(sys.argv[1], "wb") as file:
    print("ready", flush=True)
    for line in sys.stdin:
        os.fsync(file.fileno())
        print("synced", flush=True)
"""
DELAY_SECONDS = 0.3

needs_strace = pytest.mark.needs("strace")


@needs_strace
async def test_each_sync_of_a_process_takes_longer_for_a_while(tmp_path: Path) -> None:
    """While its disk is slow, an `fsync` takes at least 0.3 seconds longer; afterwards the process continues."""
    argv = [sys.executable, "-c", SYNCS, str(tmp_path / "file")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()

        def sync() -> float:
            assert process.stdin is not None
            assert process.stdout is not None
            begun = time.monotonic()
            process.stdin.write(b"\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"synced\n"
            return time.monotonic() - begun

        slow = asyncio.create_task(slow_disk.slow_disk_of(Pid.of(process.pid), 5))
        while await asyncio.to_thread(sync) < DELAY_SECONDS:
            assert not slow.done()
        await slow
        sync()
        process.stdin.close()
        assert process.wait(30) == 0
