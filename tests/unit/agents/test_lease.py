import json
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes.run_records import RECORD
from fakes.writing import writing

from septet.agents.runs.folders import Runs
from septet.agents.runs.lease import Lease
from septet.agents.runs.records import RunKey
from septet.errors import SupersededError, WorkspaceBusyError

pytestmark = pytest.mark.law


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path / "runs")


def take(runs: Runs, run_id: str = "run-1", activity_id: str = "5", number: int = 1, at: float = 0.0) -> Lease:
    return Lease.take(runs, RunKey("wo-1", run_id, activity_id), number=number, started_at=at)


def test_the_last_attempt_may_write_and_those_before_may_not(runs: Runs) -> None:
    """Each attempt ends the lease of the attempt before, and its epoch is higher by one."""
    first, second = take(runs), take(runs, number=2)
    assert (first.epoch, second.epoch) == (1, 2)
    second.check()
    with pytest.raises(SupersededError):
        first.check()
    with pytest.raises(SupersededError), first.hold():
        pytest.fail("a superseded attempt has the lock")
    with second.hold():
        assert runs.lock_writer("wo-1") is None


@pytest.mark.parametrize(
    "late",
    [
        {"number": 2, "at": 20.0},
        {"number": 3, "at": 20.0},
        {"activity_id": "4", "number": 9, "at": 5.0},
        {"run_id": "run-0", "activity_id": "6"},
    ],
)
def test_an_attempt_that_was_held_up_on_its_way_comes_too_late(runs: Runs, late: dict[str, Any]) -> None:
    """An attempt with a lower number, or of a workflow run before the last reset, is refused and ends no lease."""
    take(runs, "run-0", "3")
    last = take(runs, number=3, at=30.0)
    with pytest.raises(SupersededError, match="too late"):
        take(runs, **late)
    last.check()


@pytest.mark.parametrize(
    "later",
    [
        {"number": 4, "at": 40.0},
        {"number": 1, "at": 40.0},
        {"number": 4, "at": 20.0},
        {"activity_id": "6", "at": 20.0},
        {"run_id": "run-2", "activity_id": "1", "at": 20.0},
    ],
)
def test_later_attempts_are_let_in(runs: Runs, later: dict[str, Any]) -> None:
    """A later number, a number that a person reset, a clock that was set back, and a reset are all accepted."""
    last = take(runs, number=3, at=30.0)
    take(runs, **later).check()
    with pytest.raises(SupersededError):
        last.check()


def test_half_a_line_is_passed_over(runs: Runs) -> None:
    """Half a line, as a power loss leaves it, does not keep the next attempt out."""
    take(runs)
    with (runs.folder_of("wo-1") / "attempts.jsonl").open("ab") as file:
        file.write(b'\n{"run_id": "ru')
    assert take(runs).epoch == 2


def test_who_waits_for_the_lock_learns_that_it_is_superseded(runs: Runs) -> None:
    """An attempt that waits for the lock stops its wait when a later attempt begins."""
    lock = runs.lock_writer("wo-1")
    assert lock is not None
    waiting, refused = take(runs), threading.Event()

    def wait() -> None:
        with pytest.raises(SupersededError), waiting.hold(30):
            pytest.fail("two have the lock")
        refused.set()

    thread = threading.Thread(target=wait)
    thread.start()
    take(runs, number=2)
    thread.join(10)
    os.close(lock)
    assert refused.is_set()


@pytest.fixture
def worktree(runs: Runs, tmp_path: Path) -> Path:
    _, lock = runs.create("wo-1", 1, replace(RECORD, worktree=str(tmp_path)), b"")
    os.close(lock)
    return tmp_path


def test_a_worker_that_is_stopped_with_the_lock_in_hand_makes_way(runs: Runs, worktree: Path) -> None:
    """A stopped worker that holds the lock is killed, together with its check in the worktree."""
    with writing(runs, worktree) as (worker, check):
        worker.send_signal(signal.SIGSTOP)
        with take(runs, number=2).hold(60):
            assert worker.wait(10) == -signal.SIGKILL
        check.wait(10)


def test_a_worker_that_is_slow_is_waited_for(runs: Runs, worktree: Path) -> None:
    """A running worker that holds the lock is named in the error, and not killed."""
    with writing(runs, worktree) as (worker, _):
        later = take(runs, number=2)
        assert not later.make_way()
        with pytest.raises(WorkspaceBusyError, match="held by process") as busy, later.hold(0.05):
            pytest.fail("two have the lock")
        assert busy.value.retryable
        assert worker.poll() is None


def test_a_person_who_is_stopped_with_the_lock_in_hand_is_left_alone(runs: Runs, worktree: Path) -> None:
    """A process that began no attempt is not killed: `septet rescue restore` may wait at a terminal."""
    with writing(runs, worktree) as (worker, _):
        worker.send_signal(signal.SIGSTOP)
        (runs.folder_of("wo-1") / "attempts.jsonl").unlink()
        assert not take(runs, number=2).make_way()
        assert worker.poll() is None


def test_activities_with_names_follow_each_other(runs: Runs) -> None:
    """An activity that began before the last one is refused; a new activity is accepted, by name or by number."""
    take(runs, activity_id="build_plan-1")
    take(runs, activity_id="find_plan_file-1")
    with pytest.raises(SupersededError):
        take(runs, activity_id="build_plan-1", number=2, at=30.0)
    take(runs, activity_id="build_plan-2")
    take(runs, activity_id="14")
    with pytest.raises(SupersededError):
        take(runs, activity_id="build_plan-2", number=2, at=40.0)


def test_an_attempt_that_is_made_again_and_again_keeps_one_line(runs: Runs) -> None:
    """Retries of one activity are counted on one line, and only the last attempt may write."""
    take(runs, activity_id="4")
    leases = [take(runs, number=number, at=float(number)) for number in range(1, 31)]
    written = (runs.folder_of("wo-1") / "attempts.jsonl").read_bytes().splitlines()
    attempts = [json.loads(line) for line in written if line]
    told = [(attempt["activity_id"], attempt["number"], attempt["epoch"]) for attempt in attempts]
    assert told == [("4", 1, 1), ("5", 30, 31)]
    leases[-1].check()
    for earlier in leases[:-1]:
        with pytest.raises(SupersededError):
            earlier.check()
    with pytest.raises(SupersededError, match="too late"):
        take(runs, number=29, at=29.0)
    assert take(runs, activity_id="6").epoch == 32
