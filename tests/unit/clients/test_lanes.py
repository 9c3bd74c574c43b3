import os
from dataclasses import replace

import pytest
from fakes.run_records import RECORD

from clients.disk.runs import lanes_of, owner_of, place_of
from septet.agents.runs.folders import Runs
from septet.agents.runs.records import RunKey
from septet.state import StateDir


def ran(state: StateDir, place: str, order: str, serial: int, seconds: int, step: str = "classify_issue") -> None:
    """Write the run of a work order's agent, which began `seconds` after the hour, in a workspace."""
    key, at = RunKey(order, "run-1", "5"), f"2025-01-01T00:00:{seconds:02}.000Z"
    record = replace(RECORD, key=key, serial=serial, step=step, started_at=at)
    _, lock = Runs(state.runs).create(place, 1, record, b"Work.\n")
    os.close(lock)


@pytest.fixture
def state(state: StateDir) -> StateDir:
    """Return a host with runs of two issues of `pl-1` in two lanes, and of `wo-1`."""
    ran(state, "pl-1-planner", "pl-1-a", 1, 10)
    ran(state, "pl-1-executor-1", "pl-1-a", 1, 20, "implement_plan")
    ran(state, "pl-1-planner", "pl-1-b", 2, 30)
    ran(state, "wo-1", "wo-1", 1, 40)
    return state


def test_a_work_order_is_in_the_lane_where_it_was_last(state: StateDir) -> None:
    """A work order belongs to its last lane until another one runs there, or to its own workspace."""
    assert place_of(state, "pl-1-a") == place_of(state, "pl-1-a", now=True) == "pl-1-executor-1"
    ran(state, "pl-1-executor-1", "pl-1-b", 2, 50, "implement_plan")
    assert place_of(state, "pl-1-a") == "pl-1-executor-1"
    assert place_of(state, "pl-1-a", now=True) == "pl-1-a"
    (state.workspaces / "pl-1-a").mkdir(parents=True)
    assert place_of(state, "pl-1-a") == "pl-1-a"
    assert lanes_of(state, "wo-1") == []


@pytest.mark.parametrize(
    ("seconds", "begins", "owner"),
    [
        (5, False, "pl-1-planner"),
        (5, True, "pl-1-a"),
        (15, False, "pl-1-a"),
        (15, True, "pl-1-b"),
        (35, False, "pl-1-b"),
    ],
)
def test_whose_work_a_lane_held_at_a_moment(state: StateDir, seconds: int, owner: str, *, begins: bool) -> None:
    """A lane's work belongs to the last work order that ran, or to the next if a run begins."""
    assert owner_of(state, "pl-1-planner", f"2025-01-01T00:00:{seconds:02}.500Z", begins=begins) == owner
    assert owner_of(state, "wo-1", "2025-01-01T00:00:00.000Z") == "wo-1"
    assert owner_of(state, "gone-planner", "2025-01-01T00:00:00.000Z") == "gone-planner"
