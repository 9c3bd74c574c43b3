"""The answers of the HTTP API and of the agents' tools over a real server, whose workers come and go."""

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
from fakes.around import Call, around
from fakes.mcp_lines import VERSION, WITH_TASKS
from fakes.repositories import make_origin
from fakes.running import worker_of
from fakes.waiting import wait_until
from temporalio.client import Client, DescribeWorkflowInput
from temporalio.service import RPCError
from temporalio.worker import Worker

from clients.http.app import api_of
from clients.mcp.tools import TOOLS
from clients.operations.operations import Operations
from clients.temporal.work_orders import WorkOrders
from septet.budgets.account import AccountState, LimitCall, RaiseReply, account_id
from septet.contracts.costs import CostHistory, costs_id
from septet.contracts.names import Status
from septet.contracts.order import WorkOrderInput
from septet.contracts.tracker import TrackedIssue
from septet.state import StateDir
from workflows.budgets import Account

pytestmark = pytest.mark.asyncio(loop_scope="session")

ORDERS = "/agent-work-orders"
WITHIN_SECONDS = 60
SOON_SECONDS = 25
"""Sooner than the server itself reports, after 30 seconds, that it has seen no worker."""


@dataclass
class Api:
    """The API of a queue, in this process."""

    http: httpx.AsyncClient

    async def questions(self, order_id: str) -> list[str]:
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


@asynccontextmanager
async def api(client: Client, queue: str, state: Path) -> AsyncIterator[Api]:
    app = api_of(Operations(WorkOrders(client, queue), StateDir(state), {}), None)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
        yield Api(http)


async def test_a_decision_is_neither_lost_nor_refused_where_no_worker_answers(
    client: Client, doubles: Doubles, tmp_path: Path
) -> None:
    """Each face reports the missing worker, and a task shows no question meanwhile; the same answer sent again decides."""
    order = WorkOrderInput(repository="/app", title="Totals are wrong", approve_plan=True)
    async with api(client, doubles.task_queue, tmp_path) as faces:
        async with worker_of(client, doubles):
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
        async with worker_of(client, doubles):
            assert await wait_until(lambda: faces.questions(order_id)) == [key]
            await wait_until(
                lambda: faces.task("tasks/update", order_id, inputResponses=answer),
                lambda told: "error" not in told,
            )
            task = await asyncio.wait_for(WorkOrders(client).wait(order_id), WITHIN_SECONDS)
            assert task.status is Status.COMPLETED
            await client.get_workflow_handle(f"{order_id}/pr").terminate()


async def test_budgets_and_costs_say_soon_that_no_worker_answers(client: Client, tmp_path: Path) -> None:
    """Each answer names the missing worker and the remedy; a list without a worker is an error, not an empty list."""
    queue = f"queue-{uuid.uuid4().hex}"
    day, costs = account_id(queue, "day"), costs_id(queue, "o/r")
    account = await client.start_workflow("Account", AccountState(scope="day"), id=day, task_queue=queue)
    history = await client.start_workflow("Costs", CostHistory(project="o/r"), id=costs, task_queue=queue)
    await wait_until(lambda: client.count_workflows(f'TaskQueue="{queue}"'), lambda found: found.count == 2)
    async with api(client, queue, tmp_path) as faces, asyncio.timeout(SOON_SECONDS):
        answers = await asyncio.gather(
            faces.http.get("/budgets"),
            faces.http.get("/budgets/show?budget=day"),
            faces.http.post("/budgets/raise", json={"budget": "day", "limit": "1usd"}),
            faces.http.get("/costs"),
        )
    await asyncio.gather(account.terminate(), history.terminate())
    remedy = "Start one with `septet up` or `septet worker`."
    assert [(each.status_code, each.json()["remedy"]) for each in answers] == [(503, remedy)] * 4
    assert [each.json()["detail"].partition(" within ")[0] for each in answers] == [
        *[f"No worker has answered for {day}"] * 3,
        f"No worker has answered for {costs}",
    ]


async def test_two_requests_with_one_key_at_once_are_one_work_order(
    client: Client, doubles: Doubles, tmp_path: Path
) -> None:
    """The second request gets the first's work order, also by its issue; credentials in the address do not matter."""
    project = f"o/{uuid.uuid4().hex}"
    body = {
        "repository_url": f"https://me:token@github.com/{project}",
        "github_issue_number": 7,
        "stage": "collected",
    }
    key = {"Idempotency-Key": project}
    ids: list[str] = []

    async def issue_is_found() -> bool:
        query = f'SeptetIssue="7" AND SeptetProject="{project}"'
        return [row.id async for row in client.list_workflows(query)] == ids

    async def start(api: Api) -> None:
        answer = await api.http.post(ORDERS, json=body, headers=key)
        assert answer.status_code == 201, answer.text
        ids.append(answer.json()["id"])

    async with worker_of(client, doubles), api(client, doubles.task_queue, tmp_path) as first:

        async def start_first() -> None:
            if not ids:
                await start(first)
                await wait_until(issue_is_found)

        async def describe(really: Call, workflow: DescribeWorkflowInput) -> Any:
            try:
                return await really(workflow)
            except RPCError:
                await start_first()
                raise

        seen = around(client, describe_workflow=describe)
        async with api(seen, doubles.task_queue, tmp_path) as second:
            await start(second)
        await start(first)
        assert len(ids) == 3
        assert len(set(ids)) == 1
        other = await first.http.post(ORDERS, json={**body, "draft": True}, headers=key)
        assert "was used before" in other.json()["detail"]
        await client.get_workflow_handle(ids[0]).terminate()


async def test_a_repeat_is_answered_whatever_has_changed_since(
    client: Client, doubles: Doubles, tmp_path: Path
) -> None:
    """A repeated key checks nothing again: the repository of a work order or a pipeline may be gone by then."""
    origin = make_origin(tmp_path, "app.git")
    origin.push({"README.md": "# app\n"})
    key = {"Idempotency-Key": str(uuid.uuid4())}
    bodies: dict[str, dict[str, Any]] = {
        ORDERS: {"repository_url": str(origin.bare), "title": "Totals are wrong", "stage": "collected"},
        "/pipelines": {
            "repository": str(origin.bare),
            "issues": [{"id": "1", "title": "Totals", "body": "wrong"}],
        },
    }
    async with (
        worker_of(client, doubles),
        api(client, doubles.task_queue, tmp_path) as served,
        api(client, "nobody-works-here", tmp_path) as unserved,
    ):

        async def start(path: str, **more: Any) -> dict[str, Any]:
            faces = served if path == ORDERS else unserved  # a pipeline needs no worker to start
            answer = await faces.http.post(path, json=bodies[path] | more, headers=key)
            told: dict[str, Any] = answer.json().get("pipeline") or answer.json()
            return told

        ids = [(await start(path))["id"] for path in bodies]
        origin.bare.rename(tmp_path / "moved")
        again = [await start(path) for path in bodies]
        assert [each.get("id") for each in again] == ids, again
        for path in bodies:
            assert "was used before" in (await start(path, draft=True))["detail"]
        for each in ids:
            await client.get_workflow_handle(each).terminate()


async def test_a_repeat_asks_no_tracker(client: Client, doubles: Doubles, tmp_path: Path) -> None:
    """The first request with the key read the issue: by the repeat, the tracker may be down or its key removed."""
    number = uuid.uuid4().int % 10**9
    issue = TrackedIssue(tracker="linear", id=uuid.uuid4().hex, key=f"ENG-{number}")
    order = WorkOrderInput(repository="https://github.com/o/r", tracker=issue, stage="collected")
    page = f"https://linear.app/acme/issue/ENG-{number}/totals"
    async with worker_of(client, doubles), api(client, doubles.task_queue, tmp_path) as faces:
        order_id = (await WorkOrders(client, doubles.task_queue).run(order, f"wo-linear-eng-{number}")).task.id

        async def start(**more: Any) -> dict[str, Any]:
            body = {"repository_url": page, "stage": "collected", **more}
            told: dict[str, Any] = (
                await faces.http.post(ORDERS, json=body, headers={"Idempotency-Key": page})
            ).json()
            return told

        again = await start()
        assert again.get("id") == order_id, again
        assert "was used before" in (await start(draft=True))["detail"]
        await client.get_workflow_handle(order_id).terminate()


async def test_the_tool_raises_the_limit_of_one_step(client: Client, doubles: Doubles, tmp_path: Path) -> None:
    """The call follows the remedy of a work order that waits for the step; the budget's own limit does not change."""
    operations = Operations(WorkOrders(client, doubles.task_queue), StateDir(tmp_path), {})
    async with Worker(client, task_queue=doubles.task_queue, workflows=[Account]):
        await operations.budgets.set("day", LimitCall(limit="5usd"))
        await operations.budgets.set("day", LimitCall(limit="1usd", step="build_plan"))
        tool = TOOLS["raise_budget"]
        given = tool.read({"budget": "day", "step": "build_plan", "amount": "2usd", "expected": "1usd/day"})
        raised, again = [await tool.answer(operations, given) for _ in range(2)]
        assert isinstance(raised, RaiseReply)
        assert isinstance(again, RaiseReply)
    assert (raised.is_raised, again.is_raised) == (True, False)
    assert (again.budget.limit, again.budget.step_limits) == ("5usd/day", {"build_plan": "3usd/day"})
