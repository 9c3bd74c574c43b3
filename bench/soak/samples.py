"""What is measured again and again: memory and open files of worker and server, and what lies on the disk."""

import os
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.chaos.processes import Pid

_MB = 1_000_000
_SIZES = ("page_size", "page_count", "freelist_count")


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at everything; sizes are in megabytes."""

    at: float
    """Seconds since the soak began."""
    worker_memory: float
    worker_files: float
    """Open descriptors."""
    server_memory: float
    server_live: float
    """What its heap and its stacks were at the least since the sample before: a collection leaves what is live."""
    server_files: float
    disk: float
    """The host's state directory without mirrors: workspaces, homes, runs and vaults, as they lie on the disk."""
    mirrors: float
    """They keep all that they ever fetched: they grow with the branches of their origins."""
    branches: int
    """Of the origins, the repositories that all work is pushed to."""
    database: float
    """The server's database with its log."""
    rows: float
    """The pages of that database that hold something: the file itself never gets smaller."""
    queues: int
    """Task queues that the server knows: it forgets one that nobody has used for two days."""
    timers: int
    """Timers that the server has not come to yet, those of workflows that were terminated among them."""


@dataclass(frozen=True, slots=True)
class Sampler:
    """Looks at one worker, one server and their folders."""

    worker: Pid
    server: Pid
    state: Path
    database: Path
    began: float
    """By the monotonic clock."""
    origins: Sequence[Path] = ()

    def sample(self, server_live: float) -> Sample:
        """Look once.

        Args:
            server_live: In bytes.

        Raises:
            psutil.NoSuchProcess: Worker or server is gone.
        """
        mirrors = sum(_bytes_on_disk(self.state / "mirrors"))
        worker, server = psutil.Process(self.worker.number), psutil.Process(self.server.number)
        return Sample(
            round(time.monotonic() - self.began, 1),
            worker.memory_info().rss / _MB,
            worker.num_fds(),
            server.memory_info().rss / _MB,
            server_live / _MB,
            server.num_fds(),
            (sum(_bytes_on_disk(self.state)) - mirrors) / _MB,
            mirrors / _MB,
            sum(_branches(origin) for origin in self.origins),
            sum(path.stat().st_size for path in self.database.parent.glob(f"{self.database.name}*")) / _MB,
            _bytes_of_rows(self.database) / _MB,
            _count(self.database, "task_queues"),
            _count(self.database, "timer_tasks"),
        )


def _bytes_of_rows(database: Path) -> int:
    size, pages, free = (_ask(database, f"PRAGMA {name}") for name in _SIZES)
    return size * (pages - free)


def _count(database: Path, table: str) -> int:
    return _ask(database, f"SELECT count(*) FROM {table}")  # noqa: S608 -- the names are ours


def _ask(database: Path, question: str) -> int:
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as reader:
        return int(reader.execute(question).fetchone()[0])


def _branches(origin: Path) -> int:
    listing = ("git", "--git-dir", str(origin), "for-each-ref", "--format=%(refname)", "refs/heads")
    return len(subprocess.run(listing, check=True, capture_output=True).stdout.splitlines())


def _bytes_on_disk(folder: Path) -> Iterator[int]:
    """Give what each file takes on the disk; those that go meanwhile are left out."""
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            with suppress(OSError):
                yield os.lstat(os.path.join(root, name)).st_blocks * 512  # noqa: PTH118 -- of hundred thousands
