"""The repeated measurements: memory and open files of worker and server, and the disk."""

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
    """One measurement of everything; sizes are in megabytes."""

    at: float
    """The seconds since the soak began."""
    worker_memory: float
    worker_files: float
    """The open descriptors."""
    server_memory: float
    server_live: float
    """The least size of heap and stacks since the sample before: a collection leaves only live objects."""
    server_files: float
    disk: float
    """The host's state directory without mirrors: workspaces, homes, runs and vaults, in blocks of the disk."""
    mirrors: float
    """The mirrors, which keep all that they ever fetched, so they grow with the branches of their origins."""
    branches: int
    """The branches of the origins, to which all work is pushed."""
    database: float
    """The server's database with its log."""
    rows: float
    """The used pages of the database: the file itself never shrinks."""
    queues: int
    """The task queues that the server knows: it forgets a queue after two unused days."""
    timers: int
    """The pending timers of the server, also those of terminated workflows."""


@dataclass(frozen=True, slots=True)
class Sampler:
    """Measures one worker, one server and their folders."""

    worker: Pid
    server: Pid
    state: Path
    database: Path
    began: float
    """The start by the monotonic clock."""
    origins: Sequence[Path] = ()

    def sample(self, server_live: float) -> Sample:
        """Measure once.

        Args:
            server_live: The server's live memory in bytes.

        Raises:
            psutil.NoSuchProcess: Worker or server has ended.
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
    """Yield each file's bytes on the disk, without files that are removed meanwhile."""
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            with suppress(OSError):
                yield os.lstat(os.path.join(root, name)).st_blocks * 512  # noqa: PTH118 -- of hundred thousands
