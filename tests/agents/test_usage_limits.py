"""Real CLIs at their usage limit: they report it in their own words, and another login continues."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
from fakes.model_day import Day

from clients.temporal.work_orders import WorkOrders

pytestmark = pytest.mark.timeout(600)

SECOND = "another-made-up-one"
NAME_THE_END = ("claude", "codex")
"""The CLIs that name the end of the limit; the login of another CLI is paused for a minute at first."""


async def test_a_login_at_its_usage_limit_is_started_once_and_the_second_one_goes_on(
    day: Day, begun: Callable[[Day], AbstractAsyncContextManager[WorkOrders]]
) -> None:
    """The second login ends the limited step, and begins the next step if the limit's end is known."""
    day.reaches_its_limit(second_key=SECOND)
    steps = ("classify_issue", "build_plan") if day.cli in NAME_THE_END else ("classify_issue",)
    async with begun(day) as orders:
        await day.start(orders)
        step = await day.done(orders, steps[-1])
        runs = [run.record for name in steps for run in day.runs_of(name)]
    assert step.success
    assert [record.login for record in runs if record] == ["", *["second"] * len(steps)]
    assert day.model.keys == {day.model.limited_key, SECOND}
