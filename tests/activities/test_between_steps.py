"""Agents work on what a person approved: the plan by its SHA-256, and the worktree as the step before left it."""

import hashlib

import pytest
from fakes.step_lab import FIXED, IMPLEMENTED, PLAN, StepLab
from structlog.testing import capture_logs
from temporalio.exceptions import ApplicationError

from septet.contracts.names import Step, Verdict
from septet.git.vault.vault import find, vault_at
from septet.git.workspace.plan import holds_plan
from workers.observing.logs import withhold_words

PLAN_CHANGED = "the plan's file was changed; it was restored to the plan that was found"
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
    assert PLAN_CHANGED in done.warnings
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
