"""What is said where nobody answers, in the midst of what was asked."""

from pathlib import Path

import httpx
from fakes.unreached import NoBoard, away, unreached

from clients.http.app import api_of
from clients.operations.operations import Operations
from clients.page.live import board_events
from clients.temporal.work_orders import WorkOrders
from septet.contracts.board import first_task
from septet.contracts.order import WorkOrderInput
from septet.contracts.task import Task

TASK = first_task("wo-1", WorkOrderInput(repository="/app.git", title="Do it"), None, "2026-01-01T00:00:00Z")


class Going(WorkOrders):
    """Tells of a work order, and is away when its end is waited for."""

    async def get(self, workflow_id: str) -> Task:
        """Return a work order."""
        return TASK.model_copy(update={"id": workflow_id})

    async def wait(self, workflow_id: str) -> Task:
        """Fail as the client does."""
        del workflow_id
        raise away()


class Gone(Operations):
    """Has no board, for the server is away."""

    board = NoBoard(away())


async def test_a_stream_ends_with_why(tmp_path: Path) -> None:
    """The log stream's last event is an error, with what every face says."""
    asked = await unreached(tmp_path)
    app = api_of(Operations(Going(asked.client), asked.state, {}), None)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        answer = await client.get("/agent-work-orders/wo-1/logs/stream")
    assert answer.status_code == 200, answer.text
    last = answer.text.split("\n\n")[-2]
    assert last.startswith("event: error\n")
    assert '"type": "ServerNotReached"' in last


async def test_the_page_ends_its_stream_and_tells_people(tmp_path: Path) -> None:
    """What changes on the board is told no more, and the browser comes back; a page that is opened says why."""
    asked = await unreached(tmp_path)
    gone = Gone(asked.orders, asked.state, {})
    assert [event async for event in board_events(gone, None)] == [b"retry: 2000\n\n"]
    transport = httpx.ASGITransport(api_of(gone, None))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/")
    assert answer.status_code == 503
    assert "The Temporal server does not answer: away." in answer.text
