"""The answers to a request during which the server goes away."""

from pathlib import Path

import httpx
from fakes.unreached import NoBoard, away, unreached

from clients.http.app import api_of
from clients.operations.operations import Operations
from clients.page.live import board_changes, keep_alive
from clients.temporal.work_orders import WorkOrders
from septet.contracts.order import WorkOrderInput
from septet.contracts.task import Task
from septet.contracts.task_rows import first_task

TASK = first_task("wo-1", WorkOrderInput(repository="/app.git", title="Do it"), None, "2026-01-01T00:00:00Z")


class Going(WorkOrders):
    """Work orders whose end cannot be awaited, because the server is away."""

    async def get(self, workflow_id: str) -> Task:
        """Return a work order."""
        return TASK.model_copy(update={"id": workflow_id})

    async def wait(self, workflow_id: str) -> Task:
        """Raise the client's error."""
        del workflow_id
        raise away()


class Gone(Operations):
    """Operations without a board, because the server is away."""

    board = NoBoard(away())


async def test_a_stream_ends_with_why(tmp_path: Path) -> None:
    """The last event of the log's stream is an error with the type of all clients."""
    asked = await unreached(tmp_path)
    app = api_of(Operations(Going(asked.client), asked.state, {}), None)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        answer = await client.get("/agent-work-orders/wo-1/logs/stream")
    assert answer.status_code == 200, answer.text
    last = answer.text.split("\n\n")[-2]
    assert last.startswith("event: error\n")
    assert '"type": "ServerNotReached"' in last


async def test_the_page_ends_its_stream_and_tells_people(tmp_path: Path) -> None:
    """The board's stream ends so that the browser reconnects, and a new page shows the error."""
    asked = await unreached(tmp_path)
    gone = Gone(asked.orders, asked.state, {})
    assert [event async for event in keep_alive(board_changes(gone, None))] == [b"retry: 2000\n\n"]
    transport = httpx.ASGITransport(api_of(gone, None))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/")
    assert answer.status_code == 503
    assert "The Temporal server does not answer: away." in answer.text
