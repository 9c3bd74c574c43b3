"""The record of a run whose agent has ended: a living supervisor writes it, and no other process."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from fakes.agent_lab import end_of
from fakes.run_records import RECORD

from septet.agents.outcomes.outcome import ExitRecord
from septet.agents.runs.folders import Run, Runs
from septet.agents.supervisor.recorder import write_record
from septet.agents.turns.end_of_turn import finalize_run
from septet.errors import WorkspaceBusyError

pytestmark = pytest.mark.law

EXITED = ExitRecord(cause="exited", exit_code=0)


@pytest.fixture
def supervised(tmp_path: Path) -> tuple[Run, int]:
    """A run whose agent has ended, and the lock that its supervisor holds until the record is written."""
    run, lock = Runs(tmp_path / "runs").create("wo-1", 1, RECORD, b"")
    run.stdout.touch()
    return run, lock


def test_a_run_whose_supervisor_lives_is_not_lost(supervised: tuple[Run, int]) -> None:
    """Until the supervisor has written the record, callers get a retryable error; then its record counts."""
    run, lock = supervised
    with pytest.raises(WorkspaceBusyError, match="has not written yet") as busy:
        finalize_run(run, within_seconds=0.05)
    assert (busy.value.retryable, run.exit()) == (True, None)
    run.put("exit.json", msgspec.json.encode(EXITED))
    finalize_run(run)
    os.close(lock)
    finalize_run(run)
    assert run.exit() == EXITED


def test_a_run_whose_supervisor_was_killed_is_lost(supervised: tuple[Run, int]) -> None:
    """A free lock without a record means that no process will write the record: the run is lost."""
    run, lock = supervised
    os.close(lock)
    finalize_run(run)
    assert end_of(run).cause == "lost"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Enter a run's folder, as the run's supervisor does, and return it."""
    with contextlib.chdir(tmp_path):
        yield tmp_path


def test_a_supervisor_of_many_turns_leaves_no_descriptor_open(folder: Path) -> None:
    """A supervisor that writes a record after each of many turns closes every file."""
    for number in range(3):
        write_record("exit.json", b"%d" % number, [])
        assert (folder / "exit.json").read_bytes() == b"%d" % number
    opened = [link.resolve() for link in Path("/proc/self/fd").iterdir()]
    assert [path for path in opened if path.is_relative_to(folder.resolve())] == []


def test_the_record_of_an_end_is_never_there_without_that_of_the_start(folder: Path) -> None:
    """The start's record is on disk first; otherwise a power loss could leave an end without its run."""
    (folder / "run.json").symlink_to("/dev/null")  # a target that cannot be synced
    write_record("exit.json", b"{}", [])
    assert not (folder / "exit.json").exists()
    (folder / "run.json").unlink()
    (folder / "run.json").write_text("{}", encoding="utf-8")
    write_record("exit.json", b"{}", [])
    assert (folder / "exit.json").exists()
