"""The model that each step requests of its agent when steps share a session."""

from pathlib import Path

import pytest
from fakes.repositories import Origin
from fakes.step_lab import StepLab, settings_of, step_lab

from septet.agents.runs.usage import pass_on
from septet.contracts.names import Step
from septet.contracts.order import StepSettings


async def session_after(lab: StepLab, model: str | None, session: str | None) -> str:
    settings, number = StepSettings(model=model), len(lab.runs) + 1
    call = lab.call(Step.CLASSIFY_ISSUE, pipeline="wo", session_id=session, attempt=number, settings=settings)
    done = await lab.running(call)
    record = lab.runs[-1].record
    assert record is not None
    asked = record.argv[record.argv.index("--model") + 1] if "--model" in record.argv else None
    assert asked == model
    return done.session_id or ""


async def test_a_step_without_a_model_begins_a_session_where_the_last_one_has_a_named_model(lab: StepLab) -> None:
    """A step resumes a session if it names a model, or if the session has no named model."""
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
    """The last model of a session counts also after the lane is passed on."""
    await lab.open()
    before = await session_after(lab, model, None)
    pass_on(lab.parts.host.runs, "wo-1")
    assert (await session_after(lab, None, before) == before) is (model is None)


async def test_the_workers_model_serves_where_none_is_named(tmp_path: Path, origin: Origin) -> None:
    """A work order that names no model uses the worker's."""
    async with step_lab(tmp_path, origin, settings_of(tmp_path, model="a-model-of-the-settings")) as lab:
        await lab.open()
        assert (await lab.run(Step.CLASSIFY_ISSUE)).model == "a-model-of-the-settings"


async def test_a_finalizer_asks_the_model_of_its_step(lab: StepLab) -> None:
    """The finalizer resumes the step's session and names the step's model."""
    lab.scenario(classify_issue={"answer": "perhaps a bug"})
    await lab.open()
    call = lab.call(Step.CLASSIFY_ISSUE, settings=StepSettings(model="small"))
    await lab.finalize(call, await lab.running(call))
    records = [run.record for run in lab.runs if run.record is not None]
    assert ["small" in record.argv and record.model for record in records] == ["small", "small"]
