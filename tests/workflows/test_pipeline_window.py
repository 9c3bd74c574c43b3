"""The window over a pipeline's issues: it limits the open work orders, and moves on while one issue is slow."""

from typing import Any

import pytest
from fakes.pipeline_line import line_of, statuses, until_issue
from fakes.short_pipeline import ImpatientPipeline, NarrowPipeline
from temporalio.client import Client, WorkflowHandle

from septet.contracts.names import Step
from septet.contracts.pipeline import PipelineCall
from septet.contracts.pipeline_view import IssueStatus
from workflows.pipeline import Pipeline

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANN = PipelineCall(who="ann")
NAMES = [f"n{number}" for number in range(7)]


async def started(client: Client, handle: WorkflowHandle[Any, Any]) -> list[str]:
    """Return the issues whose work orders were started over all runs, in order."""
    names: list[str] = []
    runs = [row async for row in client.list_workflows(f'WorkflowId="{handle.id}"')]
    for run in sorted(runs, key=lambda run: run.start_time):
        async for event in client.get_workflow_handle(handle.id, run_id=run.run_id).fetch_history_events():
            child = event.start_child_workflow_execution_initiated_event_attributes
            if child.workflow_id:
                names.append(child.workflow_id.rpartition("-")[2])
    return names


async def runs_of(client: Client, handle: WorkflowHandle[Any, Any]) -> int:
    """Return the number of runs of a pipeline."""
    return len([row async for row in client.list_workflows(f'WorkflowId="{handle.id}"')])


async def test_others_go_on_beside_a_slow_issue(client: Client) -> None:
    """While one issue runs the window slides on: all others complete before it, in order."""
    async with line_of(client, NarrowPipeline) as line:
        slow = line.hold("n0", Step.IMPLEMENT_PLAN)
        handle = await line.start(*NAMES, executors=2)
        await until_issue(handle, NAMES[-1], IssueStatus.COMPLETED)
        view = await handle.query(Pipeline.pipeline)
        assert statuses(view) == ["executing", *["completed"] * 6]
        assert await runs_of(client, handle) == 1
        slow.set()
        assert statuses(await handle.result()) == ["completed"] * 7
        assert await started(client, handle) == NAMES
        begun = [event for event in line.events if event.endswith(":classify_issue")]
        assert begun == [f"{name}:classify_issue" for name in NAMES]


async def test_the_window_bounds_how_many_wait(client: Client) -> None:
    """While two issues are open the others have no work order; a pause also starts none."""
    async with line_of(client, NarrowPipeline) as line:
        planning = line.hold("n0", Step.CLASSIFY_ISSUE)
        handle = await line.start(*NAMES[:4])
        await line.until("n0:classify_issue")
        assert await started(client, handle) == NAMES[:2]
        await handle.execute_update(Pipeline.pause, ANN)
        planning.set()
        await until_issue(handle, "n0", IssueStatus.PLANNED)
        assert await started(client, handle) == NAMES[:2]
        await handle.execute_update(Pipeline.resume, ANN)
        assert statuses(await handle.result()) == ["completed"] * 4
        assert await started(client, handle) == NAMES[:4]


async def test_the_next_run_is_not_waited_for_without_end(client: Client) -> None:
    """If the next run would wait for a slow issue while lanes are idle, this run continues with the next issues."""
    async with line_of(client, ImpatientPipeline) as line:
        slow = line.hold("n0", Step.IMPLEMENT_PLAN)
        handle = await line.start(*NAMES, executors=2)
        await until_issue(handle, NAMES[-1], IssueStatus.COMPLETED)
        assert await runs_of(client, handle) == 1
        slow.set()
        assert statuses(await handle.result()) == ["completed"] * 7
        assert await started(client, handle) == NAMES
