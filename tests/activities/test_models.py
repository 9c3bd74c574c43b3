"""The model that each step's agent is asked for, where steps share a session."""

import pytest
from fakes.step_lab import StepLab

from septet.agents.runs.handover import pass_on
from septet.contracts.limits import StepSettings
from septet.contracts.names import Step


async def session_after(lab: StepLab, model: str | None, session: str | None) -> str:
    """Take one more step with a model, or with none, in a session, or in a new one; return the step's session."""
    settings, number = StepSettings(model=model), len(lab.runs) + 1
    call = lab.call(Step.CLASSIFY_ISSUE, pipeline="wo", session_id=session, attempt=number, settings=settings)
    done = await lab.running(call)
    record = lab.runs[-1].record
    assert record is not None
    asked = record.argv[record.argv.index("--model") + 1] if "--model" in record.argv else None
    assert asked == model
    return done.session_id or ""


async def test_a_step_without_a_model_begins_a_session_where_the_last_one_has_a_named_model(lab: StepLab) -> None:
    """A resume keeps the model of the step before; a step that names its own, or as the last one none, goes on."""
    await lab.open()
    small = await session_after(lab, "small", None)
    assert await session_after(lab, "large", small) == small
    usual = await session_after(lab, None, small)
    assert usual != small
    assert await session_after(lab, None, usual) == usual
    assert await session_after(lab, "small", usual) == usual
    assert await session_after(lab, None, usual) not in {usual, small}


@pytest.mark.parametrize("model", [None, "small"])
async def test_a_lane_that_is_passed_on_still_knows_the_model_of_its_session(
    lab: StepLab, model: str | None
) -> None:
    """The runs of the issue before are summed up, and no step reads them; what they asked for counts."""
    await lab.open()
    before = await session_after(lab, model, None)
    pass_on(lab.parts.host.runs, "wo-1")
    assert (await session_after(lab, None, before) == before) is (model is None)


async def test_a_finalizer_asks_the_model_of_its_step(lab: StepLab) -> None:
    """It goes on in the step's session, and names the model all the same."""
    lab.scenario(classify_issue={"answer": "perhaps a bug"})
    await lab.open()
    call = lab.call(Step.CLASSIFY_ISSUE, settings=StepSettings(model="small"))
    await lab.finalize(call, await lab.running(call))
    records = [run.record for run in lab.runs if run.record is not None]
    assert ["small" in record.argv and record.model for record in records] == ["small", "small"]
