"""The reader before a push with real CLIs: the tools that each CLI offers its model."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

import pytest
from fakes.model_day import Day
from fakes.model_stub import Part

from clients.temporal.work_orders import WorkOrders

pytestmark = pytest.mark.timeout(600)

_WITHOUT_TOOLS: Final = ("claude", "opencode")
_DOES_NOTHING: Final = {"StructuredOutput", "DeferredToolPlaceholder"}
"""The tools that claude offers anyway: the form of the answer, and a name that its model must not call."""


async def test_a_second_agent_reads_outgoing_without_tools(
    day: Day, begun: Callable[[Day], AbstractAsyncContextManager[WorkOrders]]
) -> None:
    """The reader has a new session in an empty folder; its model sees the diff, no earlier prompt and no tool."""
    day.read_outgoing = True
    day.model.parts["read_outgoing"] = Part({"findings": []}, ("touch it-was-here",))
    async with begun(day) as orders:
        await day.start(orders)
        task = await orders.wait(day.order_id)
    assert (task.status, task.error) == ("completed", None)
    asked = [asked for asked in day.model.asked if asked.step == "read_outgoing"]
    assert asked
    assert all("quantity >= BULK_QUANTITY" in each.prompt for each in asked)
    assert not any("# create_pull_request" in words for each in asked for words in each.heard)
    if day.cli in _WITHOUT_TOOLS:
        assert {tool for each in asked for tool in each.tools} <= _DOES_NOTHING
    (run,) = day.runs_of("read_outgoing")
    (first,) = day.runs_of("create_pull_request")
    assert run.record is not None
    assert first.record is not None
    assert (run.record.resumed_from, run.record.worktree != first.record.worktree) == (None, True)
    assert not (Path(run.record.worktree) / "it-was-here").exists()
