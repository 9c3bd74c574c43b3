"""The model of each request when the steps of one session name different models."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

import pytest
from fakes.model_day import Day

from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import Step
from septet.contracts.order import StepSettings

pytestmark = pytest.mark.timeout(600)

SMALL_AND_BIG: Final = {
    "claude": ("claude-haiku-5-5", "claude-sonnet-5-5"),
    "codex": ("gpt-6-luna", "gpt-6.1-sol"),
    "gemini": ("gemini-2.5-flash", "gemini-2.5-pro"),
    "copilot": ("gpt-5-mini", "gpt-5.4"),
    "opencode": ("stub/small-model", "stub/big-model"),
}


async def test_a_resume_asks_the_model_of_its_step(
    day: Day, begun: Callable[[Day], AbstractAsyncContextManager[WorkOrders]]
) -> None:
    """In one session three steps use a small model, a big model, and the small model again."""
    small, big = SMALL_AND_BIG[day.cli]
    day.sessions = "shared"
    models = {Step.CLASSIFY_ISSUE: small, Step.BUILD_PLAN: big, Step.FIND_PLAN_FILE: small}
    async with begun(day) as orders:
        await day.start(orders, steps={step: StepSettings(model=model) for step, model in models.items()})
        await day.done(orders, "find_plan_file")
        sessions = {run.record.session_id for step in models for run in day.runs_of(step) if run.record}
    told = {(asked.step, asked.model) for asked in day.model.asked if asked.step in models and asked.tools}
    assert told == {(step.value, model.removeprefix("stub/")) for step, model in models.items()}
    assert len(sessions - {None}) == 1
