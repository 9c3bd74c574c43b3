"""Partitions, and ends that no worker sees: a worktree has one writer, and no unwanted writer."""

import json
import signal

import pytest
from fakes.repositories import Origin, git
from fakes.septet_command import ONCE, Septet
from fakes.shared_server import Host, stopped
from fakes.waiting import until

pytestmark = [pytest.mark.recovery, pytest.mark.law]


def test_a_worker_that_was_stopped_for_too_long_wakes_and_commits_nothing(host: Host, origin: Origin) -> None:
    """The host's next worker takes the step with the same agent; the late result and commit of the first are refused."""
    go = host.scenario("wo-split", create_commit={"waits": True})
    with host.worker() as first:
        host.start(origin, "wo-split")
        host.run_of("wo-split", "6-create_commit-1")
        with host.worker():
            worktree = host.worktree("wo-split")
            with stopped(first):
                began = len(host.attempts("wo-split"))
                until(lambda: len(host.attempts("wo-split")) > began)
                head = git(worktree, "rev-parse", "HEAD")
                go.touch()
                until(lambda: git(worktree, "rev-parse", "HEAD") != head)
                (worktree / "late.txt").write_text("written after the commit\n", encoding="utf-8")
            task = host.septet.closed("wo-split")
            # By its lease, or by the server's answer if this comes first.
            until(lambda: any("attempt_superseded" in line or "attempt_left" in line for line in first.errors))
    assert task["status"] == "completed"
    assert host.septet.runs("wo-split") == ONCE
    assert origin.sha(task["branch_name"]) == task["commit_sha"]
    assert git(origin.bare, "rev-list", "--count", f"main..{task['branch_name']}") == "1"
    assert "late.txt" not in git(origin.bare, "ls-tree", "-r", "--name-only", task["branch_name"])


def test_a_terminated_work_order_ends_its_agent(host: Host, origin: Origin) -> None:
    """The agent of a terminated work order ends a moment later with a rescue, which `septet show` reports."""
    host.scenario("wo-terminated", classify_issue={"waits": True, "edits": {"half.txt": "half done\n"}})
    with host.worker():
        host.start(origin, "wo-terminated")
        run = host.run_of("wo-terminated", "1-classify_issue-1")
        until((host.worktree("wo-terminated") / "half.txt").exists)
        host.temporal("workflow", "terminate", "--workflow-id", "wo-terminated")
        until(lambda: not host.at_work("wo-terminated"))
        until(lambda: host.rescues("wo-terminated"))
        task = host.septet("show", "wo-terminated", "--json").json["task"]
        assert (task["status"], task["error"]["type"]) == ("cancelled", "Terminated")
        assert task["error"]["message"] == "It was terminated in Temporal."
        assert task["error"]["remedy"] == "Continue it: septet retry wo-terminated"
    assert (run / "exit.json").exists()
    assert host.septet.runs("wo-terminated") == ONCE[:1]


def test_a_worker_that_starts_ends_the_agent_of_a_work_order_that_was_terminated_meanwhile(
    host: Host, origin: Origin
) -> None:
    """A worker that is stopped leaves the agent alive and logs that; the next worker ends the unwanted agent."""
    host.scenario("wo-stray", classify_issue={"waits": True, "edits": {"half.txt": "half done\n"}})
    with host.worker() as first:
        host.start(origin, "wo-stray")
        host.run_of("wo-stray", "1-classify_issue-1")
        until((host.worktree("wo-stray") / "half.txt").exists)
        assert first.end(signal.SIGTERM) == 0
        until(lambda: any("step classify_issue keeps running" in line for line in first.errors))
        host.temporal("workflow", "terminate", "--workflow-id", "wo-stray")
        assert host.at_work("wo-stray")
        with host.worker():
            until(lambda: not host.at_work("wo-stray"))
            (rescue,) = until(lambda: host.rescues("wo-stray"))
    assert "closed" in rescue["reason"]


def test_a_work_order_that_was_cancelled_while_no_worker_lived_ends_with_the_next_one(
    host: Host, origin: Origin
) -> None:
    """A worker that starts ends the agent at once; the work order is cancelled and lists its rescue."""
    host.scenario("wo-later", classify_issue={"waits": True, "edits": {"half.txt": "half done\n"}})
    with host.worker() as first:
        host.start(origin, "wo-later", timeouts={})
        host.run_of("wo-later", "1-classify_issue-1")
        until((host.worktree("wo-later") / "half.txt").exists)
        first.kill()
        host.temporal("workflow", "cancel", "--workflow-id", "wo-later")
        with host.worker():
            until(lambda: not host.at_work("wo-later"))
            task = host.septet.closed("wo-later")
            shown = host.septet("show", "wo-later", "--json").json["task"]
    assert (task["status"], task["stage"]) == ("cancelled", "done")
    assert [row["snapshot"] for row in shown["rescues"]] == [row["snapshot"] for row in host.rescues("wo-later")]
    assert shown["steps"][-1]["step"] == "classify_issue"
    assert shown["steps"][-1]["rescue"]


def test_a_reset_ends_the_agent_that_it_finds_and_begins_at_the_checkpoint(host: Host, origin: Origin) -> None:
    """A step that is reset during its agent's work restarts from its checkpoint; the agent's work is in a rescue."""
    host.scenario("wo-reset", classify_issue=[{"waits": True, "edits": {"half.txt": "half done\n"}}, {}])
    with host.worker():
        host.start(origin, "wo-reset")
        run = host.run_of("wo-reset", "1-classify_issue-1")
        until((host.worktree("wo-reset") / "half.txt").exists)
        reset = host.temporal(
            "workflow", "reset", "--workflow-id", "wo-reset", "--type", "FirstWorkflowTask", "--reason", "again"
        )
        assert reset.code == 0, reset
        task = host.septet.closed("wo-reset")
        (rescue,) = host.rescues("wo-reset")
    assert task["status"] == "completed"
    assert host.septet.runs("wo-reset") == sorted([*ONCE, "1-classify_issue-2"])
    assert json.loads((run / "exit.json").read_text(encoding="utf-8"))["why"] == "superseded"
    assert "half.txt" not in git(origin.bare, "ls-tree", "-r", "--name-only", task["branch_name"])
    assert "checkpoint" in rescue["reason"]


def test_a_person_is_no_second_writer(served: Septet, origin: Origin) -> None:
    """While an agent works, a restore into its workspace and a retry are refused: exit code 5, and the agent's run."""
    order = served.start(origin, "wo-two-writers", classify_issue={"delay_seconds": 60})
    run = served.state / "runs" / order / "1-classify_issue-1"
    until((run / "stdout.jsonl").exists)
    base = served("rescue", "list", order, "--all", "--json").json["rescues"][0]["snapshot"]
    inside = served.state / "workspaces" / order / "back"
    for refused, named in (
        (served("rescue", "restore", base, "--to", inside, "--json"), str(run)),
        (served("retry", order, "--json"), "is running"),
    ):
        assert refused.code == 5, refused
        assert named in refused.error["message"]
        assert refused.error["remedy"]
    assert not inside.exists()
    assert served.cancelled(order)["status"] == "cancelled"
    assert served("rescue", "restore", base, "--to", inside, "--json").code == 0


def test_a_step_that_is_paused_while_no_worker_lives_has_no_agent_once_one_does(
    host: Host, origin: Origin
) -> None:
    """The next worker ends the paused step's agent and keeps its session; `unpause` continues the session."""
    go = host.scenario("wo-paused-alone", classify_issue={"waits": True})
    with host.worker() as first:
        host.start(origin, "wo-paused-alone", timeouts={})
        host.run_of("wo-paused-alone", "1-classify_issue-1")
        first.kill()
        which = ("--workflow-id", "wo-paused-alone", "--activity-id", "classify_issue-1")
        assert host.temporal("activity", "pause", *which).code == 0
        assert host.at_work("wo-paused-alone")
        with host.worker():
            until(lambda: not host.at_work("wo-paused-alone"))
            assert "paused" in host.septet("show", "wo-paused-alone", "--json").json["waiting_for"]
            go.touch()
            assert host.temporal("activity", "unpause", *which).code == 0
            task = host.septet.closed("wo-paused-alone")
    assert (task["status"], task["steps"][0]["recovered_by"], task["rescues"]) == ("completed", "resume", [])


def test_a_step_that_is_reset_while_no_worker_lives_begins_anew(host: Host, origin: Origin) -> None:
    """The next worker learns of the reset by the dead worker's token: it ends the agent, whose work is in a rescue."""
    half = {"waits": True, "edits": {"half.txt": "half done\n"}}
    host.scenario("wo-reset-alone", classify_issue=[half, {}])
    with host.worker() as first:
        host.start(origin, "wo-reset-alone", timeouts={})
        host.run_of("wo-reset-alone", "1-classify_issue-1")
        until((host.worktree("wo-reset-alone") / "half.txt").exists)
        first.kill()
        which = ("--workflow-id", "wo-reset-alone", "--activity-id", "classify_issue-1")
        assert host.temporal("activity", "reset", *which).code == 0
        with host.worker():
            task = host.septet.closed("wo-reset-alone")
    assert (task["status"], task["steps"][0]["recovered_by"], len(task["rescues"])) == ("completed", None, 1)
    assert "half.txt" not in git(origin.bare, "ls-tree", "-r", "--name-only", task["branch_name"])
