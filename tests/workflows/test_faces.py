"""What the HTTP API and the tools of agents answer over a real server, whose workers come and go."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from fakes.activities import Doubles
from fakes.mcp_lines import VERSION, WITH_TASKS
from fakes.waiting import wait_until
from temporalio.client import (
    Client,
)
from temporalio.worker import Worker

from clients.http.app import api_of
from clients.operations import Operations
from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import Status
from septet.contracts.order import WorkOrderInput
from septet.state import StateDir
from workflows.pull_request import PullRequestWorkflow
from workflows.work_order import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

ORDERS = "/agent-work-orders"
WITHIN_SECONDS = 60


@dataclass
class Api:
    """The API of a queue, in this process."""

    http: httpx.AsyncClient

    async def questions(self, order_id: str) -> list[str]:
        """Return the keys of what a task asks."""
        return list((await self.task("tasks/get", order_id))["result"].get("inputRequests", ()))

    async def task(self, method: str, order_id: str, **params: Any) -> dict[str, Any]:
        """Send a request about a task of the Tasks extension, and return the whole answer."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": WITH_TASKS,
        }
        asked = {"taskId": order_id, "_meta": meta, **params}
        answer = await self.http.post(
            "/mcp",
            json={"jsonrpc": "2.0", "id": 1, "method": method, "params": asked},
            headers={
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": VERSION,
                "Mcp-Method": method,
                "Mcp-Name": order_id,
            },
        )
        told: dict[str, Any] = answer.json()
        return told


@pytest.fixture
def doubles() -> Doubles:
    return Doubles(task_queue=f"queue-{uuid.uuid4().hex}")


@asynccontextmanager
async def api(client: Client, queue: str, state: Path) -> AsyncIterator[Api]:
    """Serve the API of a queue."""
    app = api_of(Operations(WorkOrders(client, queue), StateDir(state), {}), None)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
        yield Api(http)


def worker(client: Client, doubles: Doubles) -> Worker:
    workflows = [WorkOrder, PullRequestWorkflow]
    return Worker(client, task_queue=doubles.task_queue, workflows=workflows, activities=doubles.activities())


async def test_a_decision_is_neither_lost_nor_refused_where_no_worker_answers(
    client: Client, doubles: Doubles, tmp_path: Path
) -> None:
    """Each face says that nobody answers, and a task asks nothing meanwhile; sent again, the same answer decides."""
    order = WorkOrderInput(repository="/app", title="Totals are wrong", approve_plan=True)
    async with api(client, doubles.task_queue, tmp_path) as faces:
        async with worker(client, doubles):
            order_id = (await WorkOrders(client, doubles.task_queue).put(order)).id
            (key,) = await wait_until(lambda: faces.questions(order_id))
        answer = {key: {"action": "accept", "content": {"decision": "approve"}}}
        *refused, asked, updated = await asyncio.gather(
            faces.http.post(f"{ORDERS}/{order_id}/approve"),
            faces.http.post(f"{ORDERS}/{order_id}/reject", json={"feedback": "Shorter."}),
            faces.questions(order_id),
            faces.task("tasks/update", order_id, inputResponses=answer),
        )
        assert [each.json()["type"] for each in refused] == ["urn:septet:error:ServerNotReached"] * 2
        assert asked == []
        assert updated["error"]["data"]["type"] == "ServerNotReached"
        async with worker(client, doubles):
            assert await wait_until(lambda: faces.questions(order_id)) == [key]
            assert "error" not in await faces.task("tasks/update", order_id, inputResponses=answer)
            task = await asyncio.wait_for(WorkOrders(client).wait(order_id), WITHIN_SECONDS)
            assert task.status is Status.COMPLETED
            await client.get_workflow_handle(f"{order_id}/pr").terminate()
