"""The ways of a pipeline whose histories are recorded, with a work order that goes through its lanes."""

from collections.abc import Awaitable, Callable
from typing import Final

from fakes.pipeline_line import Line, line_of, until_issue
from temporalio.client import Client, WorkflowHandle, WorkflowHistory

from septet.contracts.names import Step
from septet.contracts.pipeline import IssueCall, PipelineCall, PipelineIssue
from septet.contracts.pipeline_view import IssueStatus, PipelineView
from workflows.pipeline import Pipeline

Handle = WorkflowHandle[object, PipelineView]


async def _completed(line: Line) -> Handle:
    """Two issues of the forge, one after the other."""
    line.read = {
        "1": PipelineIssue(id="1", title="One"),
        "2": PipelineIssue(id="2", title="Two", depends_on=("1",)),
    }
    handle = await line.start(1, 2)
    await handle.result()
    return handle


async def _doomed(line: Line) -> Handle:
    """An issue that fails, and one that depends on it."""
    line.fails["a", Step.IMPLEMENT_PLAN] = 2
    handle = await line.start("a", {"id": "b", "title": "B", "body": "…", "depends_on": ["a"]})
    await handle.result()
    return handle


async def _told(line: Line) -> Handle:
    """Paused, resumed, planned again, skipped and stopped."""
    working = line.hold("a", Step.IMPLEMENT_PLAN)
    handle = await line.start("a", "b", "c", "d", plans_ahead=2)
    await line.until("a:implement_plan")
    await until_issue(handle, "b", IssueStatus.PLANNED)
    await until_issue(handle, "c", IssueStatus.PLANNED)
    await handle.execute_update(Pipeline.pause, PipelineCall(who="ann"))
    await handle.execute_update(Pipeline.resume, PipelineCall(who="ann"))
    await handle.execute_update(Pipeline.skip, IssueCall(issue_id="c"))
    await until_issue(handle, "c", IssueStatus.SKIPPED)
    await handle.execute_update("replan", IssueCall(issue_id="b", why="smaller"))
    await until_issue(handle, "b", IssueStatus.PLANNED)
    await handle.execute_update(Pipeline.stop, PipelineCall(who="ann"))
    working.set()
    await handle.result()
    return handle


async def _cancelled(line: Line) -> Handle:
    """Cancelled while one is carried out and one is planned."""
    line.hold("a", Step.IMPLEMENT_PLAN)
    handle = await line.start("a", "b", executors=2)
    await line.until("a:implement_plan")
    await until_issue(handle, "b", IssueStatus.EXECUTING)
    await handle.cancel()
    await _over(handle)
    return handle


async def _moved(line: Line) -> Handle:
    """The host of its lanes is gone between two issues: each lane moves as a work order enters it."""
    line.moving_here()
    async with line.another_host(kept=True):
        handle = await line.start("a", "b")
        await line.until("a:classify_issue")
        await handle.execute_update(Pipeline.pause, PipelineCall(who="ann"))
        await until_issue(handle, "a", IssueStatus.PLANNED)
    await handle.execute_update(Pipeline.resume, PipelineCall(who="ann"))
    await line.give_up(handle, "a")
    await line.give_up(handle, "b")
    await handle.result()
    return handle


async def _over(handle: Handle) -> None:
    async for event in handle.fetch_history_events(wait_new_event=True):
        if event.HasField("workflow_execution_canceled_event_attributes"):
            return


PIPELINES: Final[dict[str, Callable[[Line], Awaitable[Handle]]]] = {
    "completed": _completed,
    "doomed": _doomed,
    "told": _told,
    "cancelled": _cancelled,
    "moved": _moved,
}
MEMBERS: Final = {
    "member_completed": ("completed", "-1"),
    "member_failed": ("doomed", "-a"),
    "member_moved": ("moved", "-b"),
}
"""Work orders of a pipeline: in which way, and how its id ends."""


async def history_of_pipeline(client: Client, name: str) -> WorkflowHistory:
    """Return the history of a way, or of one of its work orders."""
    way, member = MEMBERS.get(name, (name, ""))
    async with line_of(client) as line:
        handle = await PIPELINES[way](line)
        return await client.get_workflow_handle(f"{handle.id}{member}").fetch_history()
