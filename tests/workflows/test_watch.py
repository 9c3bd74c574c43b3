"""A watch waits: the server sends the news, and no worker answers a query in between."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fakes.activities import Doubles, done
from fakes.running import worker_of
from temporalio.client import Client, WorkflowExecutionDescription
from temporalio.worker import HandleQueryInput, Interceptor, WorkflowInboundInterceptor

from clients.disk.workspace_view import WorkspaceView
from clients.operations.watch import Watch
from clients.temporal.work_orders import WorkOrders
from septet.contracts.facts import Usage
from septet.contracts.names import Step
from septet.contracts.order import WorkOrderInput
from septet.contracts.steps import StepCall, StepResult
from septet.state import StateDir

pytestmark = pytest.mark.asyncio(loop_scope="session")

WITHIN_SECONDS = 60
QUIET_SECONDS = 2.0
"""Four looks at the disk; the first would show a watch that queries each time."""
ASKED: Counter[str] = Counter()


async def _somebody_works(_row: WorkflowExecutionDescription) -> str:
    return ""


class Counting(WorkflowInboundInterceptor):
    """Counts the queries of workflows by their ids."""

    async def handle_query(self, input: HandleQueryInput) -> Any:  # noqa: A002 -- the SDK's name
        from temporalio import workflow

        ASKED[workflow.info().workflow_id] += 1
        return await super().handle_query(input)


class Queries(Interceptor):
    """Sees each query that a worker answers; the server counts an Action for each query."""

    def workflow_interceptor_class(self, input: Any) -> type[WorkflowInboundInterceptor]:  # noqa: A002
        del input
        return Counting


@asynccontextmanager
async def held(client: Client, doubles: Doubles, go: asyncio.Event) -> AsyncIterator[WorkOrders]:
    """Serve work orders whose `implement_plan` waits until `go` is set."""

    async def implement(call: StepCall) -> StepResult:
        await go.wait()
        return done(call)

    doubles.steps[Step.IMPLEMENT_PLAN] = [implement]
    async with worker_of(client, doubles, interceptors=[Queries()]):
        yield WorkOrders(client, doubles.task_queue)


async def test_a_watch_asks_only_on_news(client: Client, doubles: Doubles, tmp_path: Path) -> None:
    """While a step runs the watch sends no query; it shows each step as the step begins."""
    go = asyncio.Event()
    async with held(client, doubles, go) as orders:
        order_id = (await orders.put(WorkOrderInput(repository="/app", title="Totals are wrong"))).id
        view = WorkspaceView(StateDir(tmp_path), dict(os.environ), order_id)
        async with (
            aclosing(Watch(orders, view, _somebody_works).looks()) as looks,
            asyncio.timeout(WITHIN_SECONDS),
        ):
            look = await anext(looks)
            while look.running_step != "implement_plan" or len(look.task.steps) < 4:
                look = await anext(looks)
            following = asyncio.ensure_future(anext(looks))
            try:
                await asyncio.wait(
                    [following], timeout=QUIET_SECONDS
                )  # the last answer may be older than its news
                before = ASKED[order_id]
                await asyncio.wait([following], timeout=QUIET_SECONDS)
                assert (following.done(), ASKED[order_id]) == (False, before)
                assert before <= len(look.task.steps) + 4
            finally:
                go.set()
                look = await following
            while not look.task.is_closed:
                look = await anext(looks)
        assert (look.task.status, len(look.task.steps), look.running_step) == ("completed", 7, "")
        await client.get_workflow_handle(f"{order_id}/pr").terminate()


@pytest.mark.parametrize("nobody", ["", "No worker runs."])
async def test_a_watch_knows_what_was_used_where_no_worker_answers(
    client: Client, doubles: Doubles, tmp_path: Path, nobody: str
) -> None:
    """After a worker's end within a step, the total is of the finished steps, whether the watch knows of the end or not."""

    async def nobody_works(_row: WorkflowExecutionDescription) -> str:
        return nobody

    used = Usage(input_tokens=900, output_tokens=100)
    doubles.steps = {step: [lambda call: done(call, usage=used)] for step in Step}
    async with held(client, doubles, asyncio.Event()) as orders, asyncio.timeout(WITHIN_SECONDS):
        order_id = (await orders.put(WorkOrderInput(repository="/app", title="Totals are wrong"))).id
        view = WorkspaceView(StateDir(tmp_path), dict(os.environ), order_id)
        async with aclosing(Watch(orders, view, _somebody_works).looks()) as looks:
            before = await anext(looks)
            while before.running_step != "implement_plan" or len(before.task.steps) < 4:
                before = await anext(looks)
    async with aclosing(Watch(orders, view, nobody_works).looks()) as looks, asyncio.timeout(WITHIN_SECONDS):
        look = await anext(looks)
        while not look.task.steps:
            look = await anext(looks)
    await client.get_workflow_handle(order_id).terminate()
    assert (look.tokens, before.tokens, len(look.task.steps)) == (4000, 4000, 4)
