"""A step that meets the remains of a dead process or a broken disk."""

import asyncio
import shutil
from pathlib import Path

import pytest
from fakes.repositories import git
from fakes.step_lab import IMPLEMENTED, StepLab
from fakes.waiting import wait_until
from temporalio.exceptions import ApplicationError

from septet.contracts.names import Step, Verdict
from septet.git.snapshots.destroy import remove_workspace
from septet.git.vault.facts import SnapshotOptions

pytestmark = pytest.mark.law


async def test_a_lock_that_a_dead_agent_s_git_left_does_not_stop_the_next_agent(lab: StepLab) -> None:
    """A lock of a git process that died in the step before is removed before the next agent starts."""
    await lab.open_to(Step.IMPLEMENT_PLAN)
    (lab.worktree / ".git" / "index.lock").write_text("half an index")
    lab.agent(f"write('src/app.py', 'fixed')\ngit('add', 'src/app.py')\nanswer({IMPLEMENTED!r})")
    result = await lab.run(Step.IMPLEMENT_PLAN)
    assert (result.verdict, result.agent_starts) == (Verdict.DONE, 1)
    assert git(lab.worktree, "diff", "--cached", "--name-only") == "src/app.py"


async def test_a_mirror_that_breaks_under_a_step_is_mended_and_the_agent_paid_once(lab: StepLab) -> None:
    """If the mirror breaks during a step, the next attempt uses a newly fetched mirror and starts no agent."""
    await lab.open_to(Step.IMPLEMENT_PLAN)
    ready, broken = lab.root / "ready", lab.root / "broken"
    lab.agent(f"""
write('src/app.py', 'fixed')
open({str(ready)!r}, 'w').close()
wait_for({str(broken)!r})
answer({IMPLEMENTED!r})
""")
    running = asyncio.ensure_future(lab.run(Step.IMPLEMENT_PLAN))
    await wait_until(ready.exists)
    for folder in (lab.place.mirror / "objects").glob("??"):
        shutil.rmtree(folder)
    broken.touch()
    with pytest.raises(ApplicationError) as failed:
        await running
    assert (failed.value.type, failed.value.non_retryable) == ("MirrorMended", False)
    result = await lab.run(Step.IMPLEMENT_PLAN)
    assert (result.verdict, result.recovered_by, result.agent_starts) == (Verdict.DONE, "read", 1)
    assert (lab.worktree / "src/app.py").read_text() == "fixed"


async def test_a_mirror_that_cannot_be_mended_fails_the_step_with_its_work_kept(lab: StepLab) -> None:
    """If the origin is missing too, the error names it; after its return another workflow run ends the step."""
    await lab.open_to(Step.IMPLEMENT_PLAN)
    lab.write("src/half.py", "half")
    mirror, origin = lab.place.mirror, lab.origin.bare
    (mirror / "objects").rename(mirror / "objects.away")
    origin.rename(f"{origin}.away")
    failed = await lab.failing(lab.call(Step.IMPLEMENT_PLAN))
    assert failed.non_retryable
    assert str(origin) in failed.message
    assert [rescue.snapshot for rescue in failed.details[0].result.rescues] == lab.snapshots("rescue") != []
    assert (lab.worktree / "src/half.py").read_text() == "half"
    Path(f"{origin}.away").rename(origin)
    lab.run_id = "run-2"
    with pytest.raises(ApplicationError, match="fetched again"):
        await lab.run(Step.IMPLEMENT_PLAN)
    assert (await lab.run(Step.IMPLEMENT_PLAN)).verdict is Verdict.DONE
    assert (lab.worktree / "src/half.py").read_text() == "half"


async def test_a_workspace_that_was_removed_names_its_last_snapshot(lab: StepLab) -> None:
    """A step whose worktree was removed starts no agent, and its error names the last snapshot and its restore."""
    await lab.open_to(Step.IMPLEMENT_PLAN)
    lab.write("src/half.py", "half")
    call = lab.call(Step.IMPLEMENT_PLAN)
    remove_workspace(lab.place, SnapshotOptions("a test", 1 << 20))
    failed = await lab.failing(call)
    assert (failed.type, lab.runs) == ("Workspace", [])
    assert lab.snapshots()[-1] in failed.message
    assert "rescue restore" in failed.details[0].remedy


async def test_an_agent_that_went_missing_between_steps_is_named_and_its_return_goes_on(lab: StepLab) -> None:
    """The step fails with the missing program's path and a remedy; after the program's return the step passes."""
    await lab.open_to(Step.IMPLEMENT_PLAN)
    lab.write("src/half.py", "half")
    lab.parts.host.snapshots.take(lab.place, "checkpoint", "what the steps before this one leave")
    program = lab.root / "agent"
    program.rename(lab.root / "away")
    failed = await lab.failing(lab.call(Step.IMPLEMENT_PLAN))
    assert (failed.type, failed.non_retryable) == ("AgentMissing", True)
    assert str(program) in failed.message
    assert failed.details[0].remedy
    assert (lab.worktree / "src/half.py").read_text() == "half"
    (lab.root / "away").rename(program)
    lab.run_id = "run-2"
    assert (await lab.run(Step.IMPLEMENT_PLAN)).verdict is Verdict.DONE
