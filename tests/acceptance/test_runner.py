"""A runner with workers, as in containers, by the real commands."""

import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from fakes.repositories import Origin
from fakes.septet_command import Septet
from fakes.waiting import until

pytestmark = [pytest.mark.recovery, pytest.mark.law]


@pytest.fixture
def team(served: Septet, septet: Septet) -> Iterator[Septet]:
    extra = {
        "TEMPORAL_ADDRESS": served.address,
        "SEPTET_TASK_QUEUE": septet.root.name + str(id(septet)),
        "SEPTET_RUNNER": "true",
    }
    made = Septet(septet.root, extra, shares=served)
    yield made
    made.end_all()


def test_workers_come_and_go_and_no_agent_is_started_twice(team: Septet, origin: Origin, tmp_path: Path) -> None:
    """A killed worker's successor adopts the runner's agent, or reads its answer: no other agent starts."""
    with team.serving("runner") as runner:
        with team.serving("worker") as first:
            team.start(origin, "wo-runner", classify_issue={"wait_for": str(tmp_path / "gate")})
            team.until_works("wo-runner", "1-classify_issue-1")
            first.kill()
            assert runner.process.poll() is None
            with team.beside("worker"):
                (tmp_path / "gate").touch()
                task = team.closed("wo-runner")
        assert (task["status"], len(team.runs("wo-runner"))) == ("completed", 7)
        assert task["steps"][0]["recovered_by"] in {"adopt", "read"}


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # the process has ended between the two calls
        return False


def test_a_killed_runner_costs_its_agent_the_seconds_alone(team: Septet, origin: Origin, tmp_path: Path) -> None:
    """The agent dies with its runner; the worker waits for the next runner, and resumes the session on it."""
    with team.serving("runner") as first, team.serving("worker"):
        team.start(origin, "wo-resumed", classify_issue={"wait_for": str(tmp_path / "gate")})
        team.until_works("wo-resumed", "1-classify_issue-1")
        supervisors = psutil.Process(first.process.pid).children(recursive=True)
        first.process.send_signal(signal.SIGKILL)
        first.process.wait(60)
        until(lambda: not any(map(_lives, supervisors)))
        (tmp_path / "gate").touch()
        with team.started("runner"):
            task = team.closed("wo-resumed")
    assert task["status"] == "completed"
    assert (task["steps"][0]["recovered_by"], len(team.runs("wo-resumed"))) == ("resume", 8)


def test_a_runner_that_says_it_is_ready_hears_at_once_that_it_is_to_end(team: Septet) -> None:
    """SIGTERM right after the ready message ends the runner with exit code 0, as at any other time."""
    for _ in range(3):
        with team.serving("runner") as runner:
            assert runner.end(signal.SIGTERM) == 0


def test_a_work_order_that_waits_says_for_what(team: Septet, origin: Origin) -> None:
    """`show` names the cause of the wait, here a missing runner, and no cause once the step continues."""
    with team.serving("worker"):
        team.start(origin, "wo-waits-for-runner")
        team.wait_for_detail("wo-waits-for-runner", lambda detail: "runner" in (detail["waiting_for"] or ""))
        assert "waiting for   classify_issue: " in team("show", "wo-waits-for-runner").out
        with team.started("runner"):
            team.wait_for_detail("wo-waits-for-runner", lambda detail: detail["waiting_for"] is None)


def test_a_second_runner_is_refused(team: Septet) -> None:
    """The error names the state directory with exit code 6; doctor fails without a runner and passes with one."""
    assert _runner_check(team)["status"] == "failed"
    with team.serving("runner"):
        ended = team("runner", "--json")
        assert _runner_check(team)["status"] == "ok"
    assert (ended.code, ended.error["type"]) == (6, "AlreadyRunning")
    assert str(team.state) in ended.error["message"]


def _runner_check(team: Septet) -> dict[str, str]:
    checks: list[dict[str, str]] = team("doctor", "--json").json["checks"]
    return next(check for check in checks if check["name"] == "runner")
