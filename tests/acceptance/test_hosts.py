"""Two hosts on one server, of which one is lost within a step, for good or for a while."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fakes import shared_server
from fakes.repositories import Origin, git
from fakes.septet_command import WITHIN_SECONDS, Running, Septet
from fakes.waiting import until

pytestmark = [pytest.mark.recovery, pytest.mark.timeout(300), pytest.mark.law]

GONE_WITHIN_SECONDS = 240.0
HEARTBEAT_SECONDS = 5
ORPHAN_SECONDS = 5
"""A host is given up after both times together."""
BEFORE = ["classify_issue", "build_plan", "find_plan_file", "generate_branch"]
AFTER = ["implement_plan", "create_commit", "create_pull_request"]
Host = Callable[..., Septet]


@pytest.fixture
def host(served: Septet, tmp_path: Path) -> Iterator[Host]:
    """A function that makes a host with a queue for this test alone, on the shared server."""

    def make(name: str, **extra: str) -> Septet:
        limits = {"SEPTET_ORPHAN_LIMIT_SECONDS": str(ORPHAN_SECONDS), "SEPTET_PROBE_SECONDS": "2"}
        queue = {"SEPTET_TASK_QUEUE": tmp_path.name, "TEMPORAL_ADDRESS": served.address}
        return Septet(tmp_path / name, {**limits, **queue, **extra}, shares=served)

    yield make
    shared_server.give_up_queue(served, served.address, tmp_path.name)


def steps_of(septet: Septet, order_id: str) -> list[str]:
    return [name.split("-")[1] for name in septet.runs(order_id)]


def start(septet: Septet, origin: Origin, order_id: str) -> None:
    host = shared_server.Host(septet, septet.address, septet.extra["SEPTET_TASK_QUEUE"])
    host.start(origin, order_id, timeouts={"heartbeat_seconds": HEARTBEAT_SECONDS})


def started(septet: Septet, origin: Origin, order_id: str) -> None:
    start(septet, origin, order_id)
    until(lambda: (septet.state / "runs" / order_id).is_dir() and "implement_plan" in steps_of(septet, order_id))


def lose(septet: Septet, worker: Running) -> None:
    """Lose a host: worker, supervisors, agents and the state directory."""
    worker.kill()
    septet.end_all()
    shutil.rmtree(septet.state)


def test_a_host_that_is_gone_costs_one_step_and_nothing_that_was_finished(
    served: Septet, host: Host, origin: Origin, tmp_path: Path
) -> None:
    """The work order continues on another host from the last checkpoint: finished steps stay, with one pull request."""
    kept = {"SEPTET_CHECKPOINT_REMOTE": str(tmp_path / "checkpoints")}
    first, second = host("first", **kept), host("second", **kept)
    order_id = first.scenario("wo-lost", {"steps": {"implement_plan": {"hang": True}}})
    with first.serving("worker") as worker:
        started(first, origin, order_id)
        assert steps_of(first, order_id) == [*BEFORE, "implement_plan"]
        with second.serving("worker") as other:
            lose(first, worker)
            task = served.closed(order_id, GONE_WITHIN_SECONDS)
            assert task["status"] == "completed", task
            assert steps_of(second, order_id) == AFTER
            history = served.temporal("workflow", "show", "--workflow-id", order_id, "--output", "json").out
            assert '"host_silent"' in history
            assert history.count("EVENT_TYPE_TIMER_STARTED") <= 2  # it waits only for the end of agents
            row = next(row for row in task["steps"] if row["step"] == "implement_plan")
            assert row["recovered_by"] == "rerun"
            assert f"host {other.ready['host']}" in row["warnings"][-1]
            history = second("show", order_id, "--json").json["history"]
            assert [move["why"] for move in history if "is gone" in move["why"]]
    pulls = git(origin.bare, "ls-tree", "-r", "--name-only", "refs/septet/forge").splitlines()
    assert len([name for name in pulls if "pull" in name]) == 1
    assert origin.sha(task["branch_name"]) == task["commit_sha"]


def test_a_host_that_is_drained_finishes_what_it_has_and_takes_nothing_new(
    served: Septet, host: Host, origin: Origin
) -> None:
    """Its running agent continues after the restart, its work order ends on it, and new work orders open elsewhere."""
    first, second, drained = host("first"), host("second"), host("first", SEPTET_DRAIN="true")
    first.scenario("wo-held", {"steps": {"implement_plan": {"delay_seconds": 3}}})
    with first.beside("worker"):
        started(first, origin, "wo-held")
    new = [f"wo-new-{number}" for number in range(4)]
    with drained.serving("worker"), second.serving("worker"):
        for order_id in new:
            start(drained, origin, order_id)
        tasks = [served.closed(order_id) for order_id in ("wo-held", *new)]
    assert [task["status"] for task in tasks] == ["completed"] * 5
    assert steps_of(first, "wo-held") == [*BEFORE, *AFTER]
    assert [steps_of(second, order_id) for order_id in new] == [[*BEFORE, *AFTER]] * 4
    assert not any((first.state / "workspaces" / order_id).exists() for order_id in new)


def test_a_person_can_say_that_a_host_is_dead(served: Septet, host: Host, origin: Origin, tmp_path: Path) -> None:
    """Each face names a silent host and the command; `host-gone` moves the work orders of this host at once.

    Without the command the work orders would wait, and each face says until when.
    """
    kept = {"SEPTET_CHECKPOINT_REMOTE": str(tmp_path / "checkpoints"), "SEPTET_ORPHAN_LIMIT_SECONDS": "1000"}
    first, second = host("first", **kept), host("second", **kept)
    order_id = first.scenario("wo-said", {"steps": {"implement_plan": {"hang": True}}})
    with first.serving("worker") as worker:
        started(first, origin, order_id)
        with second.serving("worker") as other:
            lose(first, worker)
            task = served.wait_for_order(order_id, "blocked")
            expect_named(second, task, worker.ready["host"], served.page)
            assert second("host-gone", other.ready["host"], "--json").code == 3
            answer = second("host-gone", worker.ready["host"], "--json")
            told = {"work_orders": [order_id], "pipelines": [], "unanswered": []}
            assert answer.json == {"ok": True, "host": worker.ready["host"], **told}
            task = served.closed(order_id, GONE_WITHIN_SECONDS)
    assert task["status"] == "completed", task
    assert steps_of(second, order_id) == AFTER


def expect_named(septet: Septet, task: dict[str, Any], lost: str, page: str) -> None:
    """Check that each face of the work order names the silent host, with the command."""
    silence, remedy = f"Host {lost}, which has the workspace, has been silent since ", f"septet host-gone {lost}"
    assert (task["status"], task["error"]["type"]) == ("waiting", "HostSilent")
    assert re.fullmatch(
        silence + r"\d\d:\d\d UTC; the work order continues on another host at \d\d:\d\d UTC\.",
        task["error"]["message"],
    )
    for command in (("show", task["id"]), ("board",), ("show", task["id"], "--json")):
        told = septet(*command).out
        assert (command, silence in told, remedy in told) == (command, True, True), told
    (listed,) = (each for each in septet("list", "--json").json["tasks"] if each["id"] == task["id"])
    assert listed["error"] == task["error"]
    checks = {each["name"]: each for each in septet("doctor", "--json").json["checks"]}
    assert (silence in checks["host"]["message"], remedy in checks["host"]["remedy"]) == (True, True)
    link = httpx.URL(page)
    own, name = link.copy_with(host="127.0.0.1"), {"Host": link.netloc.decode()}
    with httpx.Client(headers=name, trust_env=False, timeout=WITHIN_SECONDS) as browser:
        browser.get(own)
        for path in ("/", f"/work-orders/{task['id']}"):
            assert remedy in browser.get(own.copy_with(raw_path=path.encode())).text


def is_without_host(task: dict[str, Any]) -> bool:
    return task["error"] is not None and task["error"]["type"] == "HostGone"


def test_without_a_checkpoint_remote_it_waits_says_why_and_goes_on_when_the_host_is_back(
    served: Septet, host: Host, origin: Origin
) -> None:
    """The work order is blocked with the remedy; the host's next worker continues it."""
    first, second = host("first"), host("second")
    order_id = first.scenario("wo-waits", {"steps": {"implement_plan": [{"hang": True}, {}]}})
    with first.serving("worker") as worker:
        gone = worker.ready["host"]
        started(first, origin, order_id)
        with second.serving("worker"):
            worker.kill()
            first.end_all()
            task = served.wait_for_order(order_id, is_without_host, GONE_WITHIN_SECONDS)
            assert (task["status"], task["stage"]) == ("waiting", "blocked")
            assert f"Host {gone}" in task["error"]["message"]
            assert "Start a worker on its state directory" in task["error"]["remedy"]
            assert not (second.state / "runs" / order_id).exists()
            with first.serving("worker"):
                task = served.closed(order_id, GONE_WITHIN_SECONDS)
            # The query needs a worker, and the worker with the cached work order has just ended.
            history = served.wait_for_detail(order_id, lambda detail: detail["history"])["history"]
            moves = [(move["from"], move["to"]) for move in history]
    assert (task["status"], task["error"]) == ("completed", None)
    assert moves == [
        ("", "executing"),
        ("executing", "blocked"),
        ("blocked", "executing"),
        ("executing", "review"),
    ]
