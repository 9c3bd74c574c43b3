"""A worker's process that has begun an attempt at `wo-1`: it holds the writer lock and runs a check."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from septet.agents.runs.folders import Runs
from septet.agents.runs.lease import Lease
from septet.agents.runs.records import RunKey


@contextmanager
def writing(runs: Runs, worktree: Path) -> Iterator[tuple["subprocess.Popen[str]", psutil.Process]]:
    argv = [sys.executable, __file__, str(runs.root), str(worktree)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        check = psutil.Process(int(worker.stdout.readline()))
        try:
            yield worker, check
        finally:
            with suppress(psutil.NoSuchProcess):
                check.kill()
            worker.kill()


def _write(root: Path, worktree: Path) -> None:
    lease = Lease.take(Runs(root), RunKey("wo-1", "run-1", "5"))
    with lease.hold():
        check = subprocess.Popen(["sleep", "600"], cwd=worktree, start_new_session=True, stdout=subprocess.DEVNULL)
        print(check.pid, flush=True)  # noqa: T201 -- it is a program that prints
        time.sleep(600)


if __name__ == "__main__":
    _write(Path(sys.argv[1]), Path(sys.argv[2]))
