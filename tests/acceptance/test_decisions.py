import stat
from pathlib import Path

import pytest
from fakes.repositories import Origin, git
from fakes.septet_command import Septet, at_work
from fakes.waiting import until

pytestmark = pytest.mark.recovery

SLOW = {"steps": {"implement_plan": [{"delay_seconds": 40, "edits": {"half.txt": "half done\n"}}, {}]}}


def started(served: Septet, origin: Origin, order: str) -> None:
    """Start a work order and wait until its agent has written something and goes on."""
    ended = served("run", "--repo", origin.bare, "--title", "Take your time", "--id", order, "--json")
    assert (ended.code, ended.json["task"]["status"]) == (0, "running"), ended
    until((served.state / "runs" / order / "5-implement_plan-1" / "run.json").exists)


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return permission bits and bytes of everything below a folder but `.git`."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if ".git" in path.relative_to(folder).parts[:1]:
            continue
        content = (
            str(path.readlink()).encode() if path.is_symlink() else b"" if path.is_dir() else path.read_bytes()
        )
        found[str(path.relative_to(folder))] = (stat.S_IMODE(path.lstat().st_mode), content)
    return found


@pytest.mark.law
def test_a_cancelled_work_order_ends_its_agent_keeps_its_work_and_goes_on_with_retry(
    served: Septet, origin: Origin
) -> None:
    """Cancel leaves no agent and a rescue that restores bit for bit; retry completes under the same id."""
    order = served.scenario("wo-cancelled", SLOW)
    started(served, origin, order)
    worktree = served.state / "workspaces" / order
    (worktree / "a person's note.txt").write_bytes(b"CRLF\r\n\xff")
    (worktree / "empty folder").mkdir()
    (worktree / "run.sh").write_bytes(b"#!/bin/sh\n")
    (worktree / "run.sh").chmod(0o755)
    (worktree / "link").symlink_to("nowhere")

    task = served.cancelled(order)
    assert (task["status"], task["stage"]) == ("cancelled", "done")
    assert at_work(served, worktree) == []
    assert served("cancel", order, "--json").code == 5

    (rescue,) = served("rescue", "list", order, "--json").json["rescues"]
    assert [row["snapshot"] for row in task["rescues"]] == [rescue["snapshot"]]
    assert Path(task["rescues"][0]["patch"]).read_bytes().startswith(b"diff --git ")
    back = served.root / "back"
    restored = served("rescue", "restore", rescue["snapshot"], "--to", back, "--json")
    assert restored.json["rescue"]["restored_to"] == str(back)
    assert tree(back) == tree(worktree)
    assert {"a person's note.txt", "empty folder", "run.sh", "link"} <= tree(back).keys()
    (served.root / "a file").write_text("mine", encoding="utf-8")
    for taken in (back, served.root / "a file", served.state / "vaults" / "new"):
        refused = served("rescue", "restore", rescue["snapshot"], "--to", taken, "--json")
        assert (refused.code, refused.error["type"]) == (2, "Usage"), refused
        assert str(taken) in refused.error["message"]
        assert refused.error["remedy"]
    assert not (served.state / "vaults" / "new").exists()

    again = served("retry", order, "--wait", "--json")
    assert again.code == 0, again
    assert (again.json["task"]["id"], again.json["task"]["status"]) == (order, "completed")
    assert "5-implement_plan-1" in served.runs(order)


@pytest.mark.law
def test_a_completed_work_order_goes_back_to_a_step_and_keeps_its_pull_request(
    served: Septet, origin: Origin
) -> None:
    """`retry --from implement_plan` runs that step and those after it again; the pull request stays the one it was."""
    first = served("run", "--repo", origin.bare, "--title", "Do it twice", "--id", "wo-back", "--wait", "--json")
    before = served.runs("wo-back")
    again = served("retry", "wo-back", "--from", "implement_plan", "--wait", "--json")
    assert again.code == 0, again
    assert again.json["task"]["status"] == "completed"
    assert again.json["task"]["pr_url"] == first.json["task"]["pr_url"]
    new = {name for name in served.runs("wo-back") if name not in before}
    assert {name.split("-")[1] for name in new} == {"implement_plan", "create_commit", "create_pull_request"}
    assert origin.sha(again.json["task"]["branch_name"]) == again.json["task"]["commit_sha"]
    assert git(origin.bare, "for-each-ref", "--format=%(refname:short)", "refs/heads").split("\n") == [
        again.json["task"]["branch_name"], "main",
    ]  # fmt: skip


def test_a_failed_work_order_goes_on_at_the_step_that_failed(served: Septet, origin: Origin) -> None:
    """`retry` of a failed one begins with the failed step: those before it are not run again."""
    refuse = {"refuse": "Not today."}
    order = served.scenario("wo-failed", {"steps": {"implement_plan": [refuse, refuse, {}]}})
    failed = served("run", "--repo", origin.bare, "--title", "Do it", "--id", order, "--wait", "--json")
    assert failed.code == 1, failed
    again = served("retry", order, "--wait", "--json")
    assert again.code == 0, again
    assert [name for name in served.runs(order) if name.endswith("plan-2")] == ["5-implement_plan-2"]
    assert len([name for name in served.runs(order) if "classify" in name]) == 1


def test_rescues_are_listed_for_all_work_orders_and_checkpoints_only_when_asked(
    served: Septet, done: dict
) -> None:
    """`rescue list` of a completed work order is empty; with --all it shows the checkpoints of its steps."""
    assert served("rescue", "list", done["id"], "--json").json["rescues"] == []
    found = served("rescue", "list", done["id"], "--all", "--json").json["rescues"]
    assert {row["kind"] for row in found} == {"base", "checkpoint"}
    assert len(found) >= 7
    assert served("rescue", "list").code == 0
