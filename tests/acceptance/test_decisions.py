import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from fakes.repositories import Origin, make_origin
from fakes.septet_command import Septet, at_work
from fakes.waiting import until

pytestmark = pytest.mark.recovery


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    found = {}
    for path in sorted(folder.rglob("*")):
        if ".git" in path.relative_to(folder).parts[:1]:
            continue
        content = (
            str(path.readlink()).encode() if path.is_symlink() else b"" if path.is_dir() else path.read_bytes()
        )
        found[str(path.relative_to(folder))] = (stat.S_IMODE(path.lstat().st_mode), content)
    return found


@dataclass(frozen=True)
class Cancelled:
    """A work order that was cancelled during its agent's work: its task after the cancel, and its worktree then."""

    task: dict[str, Any]
    worktree: dict[str, tuple[int, bytes]]
    agents: list[psutil.Process]

    @property
    def order(self) -> str:
        return str(self.task["id"])

    @property
    def rescue(self) -> dict[str, Any]:
        (rescue,) = self.task["rescues"]
        return dict(rescue)


@pytest.fixture(scope="module")
def cancelled(served: Septet) -> Cancelled:
    """Cancel a work order whose worktree has entries that git does not keep."""
    origin = make_origin(served.root / "cancelled", "app.git")
    origin.push({"README.md": "# app\n"})
    gate = served.root / "cancelled-gate"
    slow = {"wait_for": str(gate), "edits": {"half.txt": "half done\n"}}
    order = served.start(origin, "wo-cancelled", implement_plan=slow)
    until((served.state / "runs" / order / "5-implement_plan-1" / "run.json").exists)
    worktree = served.state / "workspaces" / order
    (worktree / "a person's note.txt").write_bytes(b"CRLF\r\n\xff")
    (worktree / "empty folder").mkdir()
    (worktree / "run.sh").write_bytes(b"#!/bin/sh\n")
    (worktree / "run.sh").chmod(0o755)
    (worktree / "link").symlink_to("nowhere")
    task = served.cancelled(order)
    found = Cancelled(task, tree(worktree), at_work(served, worktree))
    gate.touch()
    return found


@pytest.mark.law
def test_a_cancelled_work_order_has_no_agent_and_a_rescue(served: Septet, cancelled: Cancelled) -> None:
    """The agent has ended when the work order is closed, and the rescue is listed with a readable patch."""
    assert (cancelled.task["status"], cancelled.task["stage"]) == ("cancelled", "done")
    assert cancelled.agents == []
    listed = served("rescue", "list", cancelled.order, "--json").json["rescues"]
    assert cancelled.rescue["snapshot"] in [row["snapshot"] for row in listed]
    assert Path(cancelled.rescue["patch"]).read_bytes().startswith(b"diff --git ")


@pytest.mark.law
def test_a_rescue_restores_bit_for_bit(served: Septet, cancelled: Cancelled) -> None:
    """Names, permissions and bytes equal those of the worktree at the cancel."""
    back = served.root / "back"
    restored = served("rescue", "restore", cancelled.rescue["snapshot"], "--to", back, "--json")
    assert restored.json["rescue"]["restored_to"] == str(back)
    assert tree(back) == cancelled.worktree
    assert {"a person's note.txt", "empty folder", "run.sh", "link"} <= tree(back).keys()


@pytest.mark.law
@pytest.mark.parametrize("to", ["a folder", "a file", "state/vaults/new"])
def test_a_rescue_is_restored_over_nothing(served: Septet, cancelled: Cancelled, to: str) -> None:
    """An existing folder, an existing file and a place within Septet's state are refused, and do not change."""
    (served.root / "a folder").mkdir(exist_ok=True)
    (served.root / "a folder" / "mine").touch()
    (served.root / "a file").write_text("mine", encoding="utf-8")
    taken = served.state / to.removeprefix("state/") if to.startswith("state/") else served.root / to
    refused = served("rescue", "restore", cancelled.rescue["snapshot"], "--to", taken, "--json")
    assert (refused.code, refused.error["type"]) == (2, "Usage"), refused
    assert str(taken) in refused.error["message"]
    assert refused.error["remedy"]
    assert not (served.state / "vaults" / "new").exists()


@pytest.mark.law
def test_a_cancelled_work_order_goes_on_with_retry(served: Septet, cancelled: Cancelled) -> None:
    """A second cancel is refused; a retry completes the work order under the same id, and keeps its first run."""
    assert served("cancel", cancelled.order, "--json").code == 5
    again = served("retry", cancelled.order, "--wait", "--json")
    assert again.code == 0, again
    assert (again.json["task"]["id"], again.json["task"]["status"]) == (cancelled.order, "completed")
    assert "5-implement_plan-1" in served.runs(cancelled.order)


def test_a_failed_work_order_goes_on_at_the_step_that_failed(served: Septet, origin: Origin) -> None:
    """`retry` begins with the failed step: earlier steps do not run again."""
    refuse = {"refuse": "Not today."}
    order = served.scenario("wo-failed", {"steps": {"implement_plan": [refuse, refuse, {}]}})
    failed = served("run", "--repo", origin.bare, "--title", "Do it", "--id", order, "--wait", "--json")
    assert failed.code == 1, failed
    again = served("retry", order, "--wait", "--json")
    assert again.code == 0, again
    assert [name for name in served.runs(order) if name.endswith("plan-2")] == ["5-implement_plan-2"]
    assert len([name for name in served.runs(order) if "classify" in name]) == 1
