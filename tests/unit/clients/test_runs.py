import os
from dataclasses import replace

import pytest
from fakes.run_records import RECORD

from clients.disk.runs import runs_of
from septet.agents.runs.folders import Runs
from septet.agents.turns.end_of_turn import close_as_lost
from septet.errors import InvalidInputError
from septet.state import StateDir


@pytest.fixture
def state(state: StateDir) -> StateDir:
    """Return a state directory with two runs of `wo-1`, the first of which has ended."""
    for serial in (1, 2):
        run, lock = Runs(state.runs).create("wo-1", 5, replace(RECORD, serial=serial), b"Work.\n")
        os.close(lock)
        if serial == 1:
            close_as_lost(run)
    return state


def test_the_runs_of_a_work_order_are_told_in_order(state: StateDir) -> None:
    """Each run has step, agent, session and folder, and an ended run its cause."""
    first, second = runs_of(state, "wo-1")
    assert (first.step, first.agent, first.session_id) == ("implement_plan", "claude", "s")
    assert first.folder == str(state.runs / "wo-1" / first.run)
    assert (first.cause, second.cause) == ("lost", None)


def test_a_run_that_cannot_be_read_is_passed_over(state: StateDir) -> None:
    """A run with a damaged record is skipped, and the other runs are shown."""
    (state.runs / "wo-1/5-implement_plan-1/run.json").write_text("{")
    assert [run.run for run in runs_of(state, "wo-1")] == ["5-implement_plan-2"]


def test_an_id_that_leaves_the_folder_is_refused(state: StateDir) -> None:
    """An id that is a path is refused."""
    with pytest.raises(InvalidInputError):
        runs_of(state, "../wo-1")
