"""The samples of the soak."""

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from bench.chaos.processes import Pid
from bench.soak.samples import Sampler

"""A program that makes and removes folders, as agents and the janitor do."""


def _make_database(folder: Path) -> Path:
    path = folder / "temporal.db"
    with closing(sqlite3.connect(path)) as writer, writer:
        for table in ("nodes", "task_queues", "timer_tasks"):
            writer.execute(f"CREATE TABLE {table} (data BLOB)")
    return path


def test_a_sample_has_memory_files_disk_and_database(tmp_path: Path) -> None:
    """A sample counts the folder's bytes, the database's size and rows, and the memory and open files."""
    state, server = tmp_path / "state", tmp_path / "server"
    (state / "runs").mkdir(parents=True)
    server.mkdir()
    database = _make_database(server)
    own = Pid.of(os.getpid())
    sampler = Sampler(own, own, state, database, time.monotonic())
    before = sampler.sample(20e6)
    (state / "runs" / "stdout.jsonl").write_bytes(os.urandom(2_000_000))
    with closing(sqlite3.connect(database)) as writer, writer:
        writer.executemany("INSERT INTO nodes VALUES (?)", [(bytes(1_000_000),), (bytes(500_000),)])
        writer.execute("DELETE FROM nodes WHERE length(data) > 500000")
        writer.executemany("INSERT INTO task_queues VALUES (?)", [(b"septet",), (b"septet-host",)])
        writer.execute("INSERT INTO timer_tasks VALUES (?)", (b"45 days",))
    with (state / "runs" / "stdout.jsonl").open("rb"):
        after = sampler.sample(30e6)
    assert 1.9 < after.disk - before.disk < 2.2
    assert 1.4 < after.database - before.database < 1.7
    assert 0.4 < after.rows - before.rows < 0.6
    assert (after.queues - before.queues, after.timers - before.timers) == (2, 1)
    assert after.worker_files >= before.worker_files + 1
    assert after.worker_memory > 1
    assert (before.server_live, after.server_live) == (20.0, 30.0)
