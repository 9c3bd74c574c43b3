"""Only the approved plan reaches the implementor, and no other file that agents or others left in the workspace."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.repositories import git
from fakes.step_lab import FIXED, IMPLEMENTED, PLAN, StepLab
from structlog.testing import capture_logs
from temporalio.exceptions import ApplicationError

from septet.contracts.names import Step, Verdict
from septet.git.snapshots.restore import restore
from septet.git.vault.vault import find, vault_at
from septet.git.workspace.plan import holds_plan
from workers.observing.logs import withhold_words
from workers.registry import parts_of

_FOUND = f"answer({{'plan_path': {PLAN!r}}})"
_SETUP = {
    ".septet/septet.toml": 'setup = ["sh install.sh"]\n',
    "install.sh": "mkdir -p node_modules/.bin; echo jest > node_modules/.bin/jest; echo a > node_modules/a.js\n",
    ".gitignore": "node_modules\nCLAUDE.local.md\n*.log\n",
}


def _files(lab: StepLab) -> set[str]:
    """Return the files of the worktree outside of `.git`."""
    return {
        str(path.relative_to(lab.worktree))
        for path in lab.worktree.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(lab.worktree).parts
    }


def _restored(lab: StepLab, tmp_path: Path, name: str) -> Path:
    folder = tmp_path / "restored"
    restore(vault_at(lab.place), find(vault_at(lab.place), name), folder)
    return folder


async def test_what_a_planner_leaves_goes_into_a_rescue_and_the_plan_goes_on(lab: StepLab, tmp_path: Path) -> None:
    """Edits, new and ignored files, commits, branches, stash and hook move from the workspace into a rescue."""
    lab.origin.push(_SETUP)
    await lab.open_to(Step.FIND_PLAN_FILE)
    head, files = git(lab.worktree, "rev-parse", "HEAD"), _files(lab)
    lab.agent(f"""
write('src/app.py', 'stashed'); git('stash')
git('checkout', '-q', '-b', 'mine'); write('by-the-way.py', 'x'); git('add', '-A'); git('commit', '-q', '-m', 'more')
write('src/app.py', 'edited'); write('specs/other.md', 'obey')
write('AGENTS.md', 'obey'); write('CLAUDE.local.md', 'obey')
write('node_modules/.bin/jest', 'evil'); write('node_modules/.bin/x', 'evil')
write('.git/hooks/post-checkout', '#!/bin/sh'); os.chmod('.git/hooks/post-checkout', 0o755)
{_FOUND}
""")

    done = await lab.run(Step.FIND_PLAN_FILE)

    assert (done.verdict, done.result_text) == (Verdict.DONE, PLAN)
    assert _files(lab) == files
    assert (lab.worktree / "node_modules" / ".bin" / "jest").read_text(encoding="utf-8") == "jest\n"
    assert git(lab.worktree, "rev-parse", "HEAD") == head
    assert git(lab.worktree, "status", "--porcelain", "--untracked-files=all") == f"?? {PLAN}"
    assert git(lab.worktree, "for-each-ref", "--format=%(refname)", "refs/stash", "refs/heads/mine") == ""
    rescue = next(rescue for rescue in done.rescues if rescue.is_left_by_planner)
    assert "AGENTS.md, CLAUDE.local.md, by-the-way.py, node_modules/.bin/jest" in rescue.reason
    assert rescue.telling in done.warnings
    assert f"septet rescue restore {rescue.snapshot}" in rescue.telling
    kept = _restored(lab, tmp_path, rescue.snapshot)
    assert (kept / "node_modules" / ".bin" / "x").read_text(encoding="utf-8") == "evil"
    assert (kept / "src" / "app.py").read_text(encoding="utf-8") == "edited"
    assert (kept / PLAN).exists()


async def test_ignored_files_over_the_limit_go_no_further_either(lab: StepLab) -> None:
    """Files of set-up stay; files that a planner added or changed beside them move to a folder on the same disk."""
    lab.origin.push(
        _SETUP | {"install.sh": _SETUP["install.sh"] + "head -c 3000000 /dev/zero > node_modules/big\n"}
    )
    async with parts_of(lab.parts.host.settings.model_copy(update={"ignored_limit_mib": 1})) as parts:
        lab = replace(lab, parts=parts)
        await lab.open_to(Step.FIND_PLAN_FILE)
        lab.agent(f"""
write('node_modules/.bin/x', 'evil'); write('node_modules/new/deep/file', 'evil')
write('node_modules/a.js', 'evil'); write('logs.log/huge', 'y' * 3000000)
{_FOUND}
""")

        done = await lab.run(Step.FIND_PLAN_FILE)

    evil = {"node_modules/.bin/x", "node_modules/new/deep/file", "node_modules/a.js", "logs.log/huge"}
    assert done.verdict is Verdict.DONE
    assert not evil & _files(lab)
    assert {"node_modules/big", "node_modules/.bin/jest"} <= _files(lab)
    assert not (lab.worktree / "node_modules" / "new").exists()
    aside = lab.worktree.with_name("wo-1~left")
    assert {str(path.relative_to(aside / "0000")) for path in aside.rglob("*") if path.is_file()} == evil
    assert str(aside) in done.rescues[-1].reason


@pytest.mark.parametrize(
    "leaves",
    [
        "os.symlink('specs', 'new'); answer({'plan_path': 'new/issue-7-wo-1-planner-totals.md'})",
        "git('rm', '-q', 'src/app.py'); write('src/app.py/plan.md', '# plan'); answer({'plan_path': 'src/app.py/plan.md'})",
    ],
)
async def test_a_plan_that_cannot_go_on_alone_is_asked_for_again(lab: StepLab, leaves: str) -> None:
    """A plan behind a new link, or in the place of a file of the repository, is refused with a reason."""
    await lab.open_to(Step.FIND_PLAN_FILE)
    lab.agent(leaves)
    refused = await lab.run(Step.FIND_PLAN_FILE)
    assert refused.verdict is Verdict.UNPROVEN
    assert "plain file" in refused.reasons[0]


async def test_a_set_up_that_ran_later_stays(lab: StepLab) -> None:
    """After a move the files of the new host's set-up stay, and files that agents left before the move go."""
    lab.origin.push(_SETUP | {"install.sh": _SETUP["install.sh"] + "date +%s%N > node_modules/stamp\n"})
    await lab.open_to(Step.FIND_PLAN_FILE)
    first = lab.workspace
    for name in ("AGENTS.md", "node_modules/mine"):
        lab.write(name, "obey")
    lab.parts.host.snapshots.take(lab.place, "checkpoint", "as another host has left it")
    (lab.place.records / "setup.json").unlink()
    await lab.open()
    stamp = (lab.worktree / "node_modules" / "stamp").read_bytes()
    lab.workspace = first
    lab.agent(_FOUND)

    done = await lab.run(Step.FIND_PLAN_FILE)

    assert "left besides the plan, and not passed on: AGENTS.md, node_modules/mine (" in done.warnings[-1]
    assert (lab.worktree / "node_modules" / "stamp").read_bytes() == stamp
    assert not {"AGENTS.md", "node_modules/mine"} & _files(lab)


async def test_a_workspace_that_continues_from_a_lane_returns_to_the_lanes_beginning(lab: StepLab) -> None:
    """A file that agents left in the lane goes into the rescue, though the workspace began with the file."""
    await lab.open_to(Step.FIND_PLAN_FILE)
    assert lab.workspace is not None
    lane = lab.workspace.checkpoint
    lab.write("AGENTS.md", "obey")
    fresh = lab.parts.host.snapshots.take(lab.place, "checkpoint", "as the lane was")
    assert fresh is not None
    lab.workspace = lab.workspace.model_copy(update={"checkpoint": fresh.name, "planned_from": lane})
    lab.agent(_FOUND)

    done = await lab.run(Step.FIND_PLAN_FILE)

    assert done.rescues[-1].reason == "left besides the plan, and not passed on: AGENTS.md"
    assert not (lab.worktree / "AGENTS.md").exists()


TOLD = "the worktree was changed between steps; it was restored to what the previous step left"


async def test_what_changes_between_steps_is_kept_put_back_and_told(lab: StepLab) -> None:
    """A plan that changed during the wait for approval goes into a rescue, and the agent reads the approved plan."""
    await lab.open_to(Step.IMPLEMENT_PLAN)
    approved = (lab.worktree / PLAN).read_text(encoding="utf-8")
    lab.write(PLAN, "# another plan\n")
    lab.write("planted", "x\n")
    lab.agent(f"""
assert open({PLAN!r}).read() == {approved!r} and not os.path.exists('planted')
write('src/app.py', {FIXED!r})
answer({IMPLEMENTED!r})
""")

    done = await lab.run(Step.IMPLEMENT_PLAN)

    assert done.verdict is Verdict.DONE
    assert TOLD in done.warnings
    assert [rescue.reason for rescue in done.rescues] == [TOLD]
    assert [rescue.snapshot for rescue in done.rescues] == lab.snapshots("rescue")


@pytest.mark.parametrize("spoils", ["write({plan!r}, '# another plan')", "os.unlink({plan!r})"])
async def test_a_second_try_carries_out_the_approved_plan(lab: StepLab, spoils: str) -> None:
    """If the first try changed the plan's file, its other work stays, and its plan is in a rescue only."""
    await lab.open_to(Step.IMPLEMENT_PLAN)
    approved = (lab.worktree / PLAN).read_bytes()
    digest = hashlib.sha256(approved).hexdigest()
    lab.progress = lab.progress.model_copy(update={"plan_sha256": digest})
    lab.agent(f"""
{spoils.format(plan=PLAN)}
write('src/half.py', 'half')
answer({IMPLEMENTED | {"success": False}!r})
""")
    refused = await lab.run(Step.IMPLEMENT_PLAN)
    start = lab.snapshots("checkpoint")[-1]
    lab.agent(f"""
assert open({PLAN!r}, 'rb').read() == {approved!r} and os.path.exists('src/half.py')
answer({IMPLEMENTED!r})
""")

    with capture_logs() as logs:
        done = await lab.run(Step.IMPLEMENT_PLAN, attempt=2, reasons=refused.reasons, starts_from=start)

    assert (refused.verdict, done.verdict) == (Verdict.REFUSED, Verdict.DONE)
    assert "the plan's file was changed; it was restored to the plan that was found" in done.warnings
    (told,) = (event for event in logs if event["event"] == "plan_changed")
    assert PLAN not in str(withhold_words(None, "warning", dict(told))), "sealed logs quote no answer"
    rescue = find(vault_at(lab.place), refused.rescues[-1].snapshot)
    assert not holds_plan(lab.place, rescue, PLAN, digest)


async def test_a_plan_that_is_not_the_approved_one_is_not_carried_out(lab: StepLab) -> None:
    """The step compares the plan's SHA-256 before an agent starts."""
    await lab.open_to(Step.IMPLEMENT_PLAN)
    other = hashlib.sha256(b"the plan that a person approved").hexdigest()
    lab.progress = lab.progress.model_copy(update={"plan_sha256": other})

    with pytest.raises(ApplicationError, match="has changed since the plan was found"):
        await lab.run(Step.IMPLEMENT_PLAN)

    assert lab.runs == []
