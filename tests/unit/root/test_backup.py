"""The files that a backup copies, and the files that it omits."""

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from septet.agents.runs.folders import Runs
from septet.agents.runs.lease import ATTEMPTS_FILE, Lease
from septet.agents.runs.records import RunKey
from septet.backup import Backup, BackupError, back_up
from septet.errors import SupersededError
from septet.state import StateDir

pytestmark = pytest.mark.law


@pytest.fixture
def state(state: StateDir) -> StateDir:
    state.host_id()
    return state


def make_backup(state: StateDir) -> tuple[Backup, Path]:
    folder = state.root.with_name("backup")
    return back_up(state, folder), folder


def names_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def test_a_copy_has_the_same_names_bytes_modes_links_and_times(state: StateDir) -> None:
    """A link is copied as a link; pipes and the files of running processes are not copied."""
    tree = state.workspaces / "wo-1"
    (tree / "src").mkdir(parents=True)
    (tree / "src/run.sh").write_bytes(b"#!/bin/sh\n")
    (tree / "src/run.sh").chmod(0o751)
    os.utime(tree / "src/run.sh", ns=(1_000_000_001, 2_000_000_003))
    (tree / "out").symlink_to("/etc")
    os.mkfifo(tree / "pipe")
    state.server_file.write_text("{}")
    (state.runner / "socket").write_text("")
    backup, folder = make_backup(state)
    copy = folder / "workspaces/wo-1"
    facts = (copy / "src/run.sh").stat()
    assert (copy / "src/run.sh").read_bytes() == b"#!/bin/sh\n"
    assert (facts.st_mode & 0o777, facts.st_mtime_ns) == (0o751, 2_000_000_003)
    assert (copy / "out").readlink() == Path("/etc")
    assert not os.path.lexists(copy / "pipe")
    assert not (folder / "server.json").exists()
    assert not (folder / "runner").exists()
    assert (folder / "host-id").read_text() == (state.root / "host-id").read_text()
    assert (backup.places, backup.left_out, backup.changing, backup.has_database) == (["wo-1"], [], [], False)
    assert not folder.with_name("backup.unfinished").exists()


def test_a_database_is_copied_as_of_one_moment_whoever_writes(state: StateDir) -> None:
    """The copy of a database that a server writes is whole and has only complete transactions."""
    stop = threading.Event()
    begun = threading.Event()

    def serve() -> None:
        with closing(sqlite3.connect(state.database, timeout=60)) as database:
            database.execute("PRAGMA journal_mode=wal")
            database.execute("CREATE TABLE rows (text)")
            while not stop.is_set():
                database.executemany("INSERT INTO rows VALUES (?)", [("x" * 1000,)] * 2)
                database.commit()
                begun.set()

    server = threading.Thread(target=serve)
    server.start()
    try:
        assert begun.wait(60)
        backup, folder = make_backup(state)
    finally:
        stop.set()
        server.join()
    assert backup.has_database
    with closing(sqlite3.connect(folder / state.database.name)) as copy:
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (count,) = copy.execute("SELECT count(*) FROM rows").fetchone()
    assert count > 0
    assert count % 2 == 0


def test_no_attempt_comes_too_late_after_a_restore(state: StateDir) -> None:
    """In the copy an older attempt counts as the latest: after a restore the server continues with its number."""
    runs = Runs(state.runs)
    for activity in ("5", "6", "7"):
        last = Lease.take(runs, RunKey("wo-1", "run", activity), started_at=float(activity))
    older = RunKey("wo-1", "run", "6")
    with pytest.raises(SupersededError):
        Lease.take(runs, older, number=2, started_at=100.0)
    _, folder = make_backup(state)
    restored = Lease.take(Runs(folder / "runs"), older, number=2, started_at=100.0)
    restored.check()
    assert restored.epoch == last.epoch + 1
    assert (state.runs / "wo-1" / ATTEMPTS_FILE).read_bytes().count(b"before_the_backup") == 0


def test_all_of_a_work_order_is_copied_with_its_records_and_its_lock(state: StateDir) -> None:
    """The copy has a work order's runs, records and lock."""
    (state.runs / "wo-1" / "1-classify_issue-1").mkdir(parents=True)
    records = state.vaults / "key.git" / "septet" / "wo-1"
    records.mkdir(parents=True)
    (records / "workspace.json").write_text("{}")
    (state.workspaces / "wo-1~lock").touch()
    backup, folder = make_backup(state)
    assert backup.places == ["wo-1"]
    assert (folder / "runs/wo-1/1-classify_issue-1").is_dir()
    assert (folder / "vaults/key.git/septet/wo-1/workspace.json").read_text() == "{}"
    assert (folder / "workspaces/wo-1~lock").exists()


def test_a_state_directory_behind_a_link_is_copied_as_the_folder_itself(state: StateDir) -> None:
    """A backup through a link to the state directory has the same files as a backup of the directory."""
    (state.runs / "wo-1").mkdir(parents=True)
    (state.workspaces / "wo-1").mkdir(parents=True)
    (state.workspaces / "wo-1~lock").touch()
    (state.vaults / "key.git" / "septet" / "wo-1").mkdir(parents=True)
    _, by_path = make_backup(state)
    link = state.root.with_name("link")
    link.symlink_to(state.root)
    by_link = state.root.with_name("by-link")
    backup = back_up(StateDir(link), by_link)
    assert (backup.places, backup.left_out) == (["wo-1"], [])
    assert names_in(by_link) == names_in(by_path) >= {"host-id", "workspaces/wo-1~lock"}


def test_a_copy_that_is_no_state_directory_is_an_error(state: StateDir, tmp_path: Path) -> None:
    """A backup without a readable host id fails and leaves no copy, since the copy would be another host."""
    (state.root / "host-id").rename(tmp_path / "id-of-the-host")
    (state.root / "host-id").symlink_to("../id-of-the-host")
    with pytest.raises(BackupError, match="host-id"):
        back_up(state, tmp_path / "elsewhere" / "backup")
    assert not (tmp_path / "elsewhere" / "backup").exists()
