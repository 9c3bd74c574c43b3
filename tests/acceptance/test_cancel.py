"""Cancel means cancel, at whatever moment it comes."""

import threading
from pathlib import Path
from typing import Any

from fakes.repositories import Origin, git
from fakes.septet_command import Septet, at_work, until

from septet.contracts.names import Step

_AT_MOST_SECONDS = 10.0


def cancelled(served: Septet, *orders: str) -> list[dict[str, Any]]:
    """Cancel work orders at once; see that no process works for them in time, and return them."""
    tasks: list[dict[str, Any]] = []
    threads = [
        threading.Thread(target=lambda order=order: tasks.append(served("cancel", order, "--json").json["task"]))
        for order in orders
    ]
    for thread in threads:
        thread.start()
    worktrees = [served.state / "workspaces" / order for order in orders]
    until(lambda: not any(at_work(served, worktree) for worktree in worktrees), _AT_MOST_SECONDS)
    for thread in threads:
        thread.join(60)
    return tasks


def start(served: Septet, origin: Origin, order: str) -> Path:
    """Start a work order and return the folder of its runs."""
    assert served("run", "--repo", origin.bare, "--title", "Stop it", "--id", order, "--json").code == 0
    return served.state / "runs" / order


def slow_pushes(origin: Origin, root: Path) -> Path:
    """Let pushes to the origin wait for a file, and return the one that says that a push has begun."""
    hook = origin.bare / "hooks" / "pre-receive"
    lines = [
        "#!/bin/sh",
        f"touch '{root}/pushing'",
        f"while ! [ -e '{root}/go' ]; do sleep 0.05; done",
    ]
    hook.write_text("\n".join(lines) + "\n", encoding="utf-8")
    hook.chmod(0o755)
    return root / "pushing"


def test_a_cancel_ends_agent_tools_and_push_and_nothing_follows(
    served: Septet, origin: Origin, tmp_path: Path
) -> None:
    """In a tool call, with a tool in a session of its own, and in the push: all ends within ten seconds, with a rescue."""
    tool = {"background_seconds": 5, "delay_seconds": 60, "edits": {"half.txt": "half done\n"}}
    served.scenario("wo-tool", {"steps": {"classify_issue": tool}})
    pushing = slow_pushes(origin, tmp_path)
    start(served, origin, "wo-push")
    runs = start(served, origin, "wo-tool")
    until(lambda: b"(Bash completed" in _read(runs / "1-classify_issue-1" / "stdout.jsonl"))
    until(pushing.exists)
    tasks = {task["id"]: task for task in cancelled(served, "wo-tool", "wo-push")}
    (tmp_path / "go").touch()
    assert {task["status"] for task in tasks.values()} == {"cancelled"}
    assert all(task["rescues"] for task in tasks.values())
    assert not (served.state / "workspaces" / "wo-tool" / "late.txt").exists()
    assert served.runs("wo-tool") == ["1-classify_issue-1"]
    assert served.runs("wo-push") == [f"{step.number}-{step.value}-1" for step in Step]
    assert git(origin.bare, "for-each-ref", "--format=%(refname)") == "refs/heads/main"


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
