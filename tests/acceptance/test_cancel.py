"""A cancel ends a work order at every moment."""

import json
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from fakes.repositories import Origin, git
from fakes.septet_command import ONCE, WITHIN_SECONDS, Septet, at_work
from fakes.shell_programs import write_program
from fakes.waiting import until

pytestmark = [pytest.mark.recovery, pytest.mark.law]

_AT_MOST_SECONDS = 10.0


def cancelled(served: Septet, *orders: str) -> list[dict[str, Any]]:
    """Cancel work orders at once, wait until no process works for them, and return them."""
    threads = [threading.Thread(target=served, args=("cancel", order, "--json")) for order in orders]
    for thread in threads:
        thread.start()
    worktrees = [served.state / "workspaces" / order for order in orders]
    until(lambda: not any(at_work(served, worktree) for worktree in worktrees))
    for thread in threads:
        thread.join(WITHIN_SECONDS)
    return [served.closed(order) for order in orders]


def seconds_to_its_end(served: Septet, order: str, run: Path) -> float:
    """Return the seconds from the request to cancel a work order to the end of its agent."""
    told = served.temporal("workflow", "show", "--workflow-id", order, "--output", "json").out
    asked = next(
        event["eventTime"] for event in json.loads(told)["events"] if "CANCEL_REQUESTED" in event["eventType"]
    )
    ended = json.loads((run / "exit.json").read_text(encoding="utf-8"))["ended_at"]
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(asked)).total_seconds()


def slow_pushes(origin: Origin, root: Path) -> Path:
    """Let pushes to the origin wait for a file, and return the file that marks the start of a push."""
    waits = f"#!/bin/sh\ntouch '{root}/pushing'\nwhile ! [ -e '{root}/go' ]; do sleep 0.05; done\n"
    write_program(origin.bare / "hooks" / "pre-receive", waits)
    return root / "pushing"


def test_a_cancel_ends_agent_tools_and_push_and_nothing_follows(
    served: Septet, origin: Origin, tmp_path: Path
) -> None:
    """A tool call, a tool in its own session and a push end within ten seconds of the cancel, with a rescue."""
    tool = {"background_seconds": 600, "hang": True, "edits": {"half.txt": "half done\n"}}
    pushing = slow_pushes(origin, tmp_path)
    served.start(origin, "wo-push")
    served.start(origin, "wo-tool", classify_issue=tool)
    until((served.state / "workspaces" / "wo-tool" / "half.txt").exists)
    until(pushing.exists)
    tasks = {task["id"]: task for task in cancelled(served, "wo-tool", "wo-push")}
    (tmp_path / "go").touch()
    run = served.state / "runs" / "wo-tool" / "1-classify_issue-1"
    assert seconds_to_its_end(served, "wo-tool", run) < _AT_MOST_SECONDS
    assert {task["status"] for task in tasks.values()} == {"cancelled"}
    assert all(task["rescues"] for task in tasks.values())
    assert tasks["wo-tool"]["usage"]["input_tokens"] > 0
    assert served.runs("wo-tool") == ["1-classify_issue-1"]
    assert served.runs("wo-push") == ONCE
    assert git(origin.bare, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
