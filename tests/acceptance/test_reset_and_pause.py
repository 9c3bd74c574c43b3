"""A person acts on a work order with Temporal's own command line: reset, pause, unpause, other options."""

import json
from typing import Any

import pytest
from fakes.repositories import Origin, git
from fakes.septet_command import Ended, Septet, at_work
from fakes.waiting import until, until_temporal

from septet.contracts.names import Step

pytestmark = [pytest.mark.recovery, pytest.mark.law]

IMPLEMENTS = "implement_plan-1"
HALF = [{"edits": {"half.txt": "half done\n"}, "hang": True}, {}]


def begun(served: Septet, origin: Origin, order: str) -> str:
    """Start a work order whose first agent of `implement_plan` writes half and hangs, and wait for this half."""
    served.start(origin, order, implement_plan=HALF)
    until((served.state / "workspaces" / order / "half.txt").exists)
    return order


def on_activity(served: Septet, act: str, order: str, *options: str) -> Ended:
    ended = served.temporal("activity", act, "-w", order, "--activity-id", IMPLEMENTS, *options)
    assert ended.code == 0, ended
    return ended


def pending(served: Septet, order: str) -> dict[str, Any]:
    described = json.loads(served.temporal("workflow", "describe", "-w", order, "-o", "json").out)
    (activity,) = described["pendingActivities"]
    return dict(activity)


def implemented(task: dict[str, Any]) -> dict[str, Any]:
    assert task["status"] == "completed", task["error"]
    (row,) = [row for row in task["steps"] if row["step"] == "implement_plan"]
    return dict(row)


def one_pull_request(origin: Origin, task: dict[str, Any]) -> None:
    branches = git(origin.bare, "for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()
    assert branches == sorted([task["branch_name"], "main"])
    assert task["pr_url"].endswith("/pull/1")
    assert origin.sha(task["branch_name"]) == task["commit_sha"]


def test_a_paused_step_ends_its_agent_and_goes_on_in_its_session(served: Septet, origin: Origin) -> None:
    """`temporal activity pause` ends the agent and keeps its session and its work; `unpause` resumes the session."""
    order = begun(served, origin, "wo-paused")
    on_activity(served, "pause", order)
    until_temporal(lambda: pending(served, order)["state"] == "PENDING_ACTIVITY_STATE_PAUSED")
    told = pending(served, order)["lastFailure"]
    assert told["applicationFailureInfo"]["type"] == "Paused"
    assert "paused" in served("show", order, "--json").json["waiting_for"]
    worktree = served.state / "workspaces" / order
    assert at_work(served, worktree) == []
    assert (worktree / "half.txt").read_text(encoding="utf-8") == "half done\n"

    on_activity(served, "unpause", order)
    task = served.closed(order)
    assert (implemented(task)["recovered_by"], task["rescues"]) == ("resume", [])
    first, second = (
        run for run in served("show", order, "--json").json["runs"] if run["step"] == "implement_plan"
    )
    assert first["session_id"] == second["session_id"]
    assert "half.txt" in git(origin.bare, "ls-tree", "--name-only", task["branch_name"]).splitlines()
    one_pull_request(origin, task)


def test_a_reset_step_begins_anew_from_its_checkpoint(served: Septet, origin: Origin) -> None:
    """`temporal activity reset` ends the agent, keeps its work in a rescue, and starts another in a new session."""
    order = begun(served, origin, "wo-activity-reset")
    on_activity(served, "reset", order)
    task = served.closed(order)
    assert implemented(task)["recovered_by"] is None
    first, second = (
        run for run in served("show", order, "--json").json["runs"] if run["step"] == "implement_plan"
    )
    assert first["session_id"] != second["session_id"]
    (rescue,) = task["rescues"]
    assert "half.txt" in git(origin.bare, "apply", "--numstat", rescue["patch"])
    assert "half.txt" not in git(origin.bare, "ls-tree", "--name-only", task["branch_name"]).splitlines()
    one_pull_request(origin, task)


def test_other_options_of_a_step_leave_its_agent_alone(served: Septet, origin: Origin) -> None:
    """`temporal activity update-options` gives a step more time and starts no other agent."""
    gate = served.root / "options-gate"
    served.start(origin, "wo-options", implement_plan={"wait_for": str(gate)})
    until((served.state / "runs" / "wo-options" / "5-implement_plan-1" / "run.json").exists)
    on_activity(served, "update-options", "wo-options", "--start-to-close-timeout", "9h")
    gate.touch()
    task = served.closed("wo-options")
    assert implemented(task)["recovered_by"] is None
    assert len(served.runs("wo-options")) == len(Step)


def test_a_cancelled_work_order_is_reset_to_its_begin(served: Septet, origin: Origin) -> None:
    """`temporal workflow reset` to the first event opens the same workspace, and the old cancel is not applied again.

    Temporal applies signals and cancels to the new run unless `--reapply-exclude` is given.
    """
    order = begun(served, origin, "wo-from-the-begin")
    assert served("cancel", order, "--json").code == 0
    reset = ("workflow", "reset", "-w", order, "-t", "FirstWorkflowTask", "--reason", "again")
    assert served.temporal(*reset, "--reapply-exclude", "All").code == 0
    task = served.closed(order)
    assert (task["status"], task["error"]) == ("completed", None)
    one_pull_request(origin, task)
    rescues = served("rescue", "list", order, "--json").json["rescues"]
    assert "implement_plan" in {rescue["step"] for rescue in rescues}


def test_retry_goes_back_to_the_last_a_middle_and_the_first_step(served: Septet, origin: Origin) -> None:
    """`retry --from` runs this step and the later steps of a completed work order, and keeps its one pull request."""
    named = ("--repo", origin.bare, "--title", "Again", "--id", "wo-retried")
    assert served("run", *named, "--wait", "--json").json["task"]["status"] == "completed"
    for step in (Step.CREATE_PULL_REQUEST, Step.GENERATE_BRANCH, Step.CLASSIFY_ISSUE):
        before = len(served.runs("wo-retried"))
        again = served("retry", "wo-retried", "--from", step.value, "--wait", "--json")
        assert again.code == 0, (step, again)
        assert len(served.runs("wo-retried")) - before == len(Step) + 1 - step.number
        one_pull_request(origin, again.json["task"])
