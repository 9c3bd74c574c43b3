"""The record of a run whose agent has ended: its supervisor writes it as long as it lives, and nobody else."""

import os
from pathlib import Path

import msgspec
import pytest

from septet.agents.outcomes.outcome import ExitRecord
from septet.agents.runs.folders import Run, Runs
from septet.agents.runs.records import RunKey, RunRecord
from septet.agents.turns.finalize_run import finalize_run
from septet.errors import WorkspaceBusyError

pytestmark = pytest.mark.law

EXITED = ExitRecord(cause="exited", exit_code=0)


@pytest.fixture
def supervised(tmp_path: Path) -> tuple[Run, int]:
    """A run whose agent has ended, and the lock that its supervisor holds until it has written the record."""
    record = RunRecord(
        RunKey("wo-1", "run-1", "5"), 1, "build_plan", "command", "first", "mark", (), (), str(tmp_path), {}, ""
    )
    run, lock = Runs(tmp_path / "runs").create("wo-1", 1, record, b"")
    run.stdout.touch()
    return run, lock


def test_a_run_whose_supervisor_lives_is_not_lost(supervised: tuple[Run, int]) -> None:
    """However long its disk takes: whoever waits is refused and may try again, and what it writes in the end counts."""
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
    """Its lock is free and it has left no record: nobody else will write one."""
    run, lock = supervised
    os.close(lock)
    finalize_run(run)
    end = run.exit()
    assert end is not None
    assert end.cause == "lost"
