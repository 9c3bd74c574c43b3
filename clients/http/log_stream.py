"""What the agents say and do, as server-sent events."""

import asyncio
import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Response
from fastapi.responses import StreamingResponse
from temporalio.service import RPCError

from clients._refused import refused
from clients.follow_logs import follow_logs
from clients.http.asked import Asked
from clients.http.bodies import OrderId
from clients.http.problems import problems
from clients.operations import Operations
from clients.told import told
from septet.errors import SeptetError

router = APIRouter(prefix="/agent-work-orders", tags=["work orders"])

_KEEPALIVE_SECONDS: Final = 15.0
_MEDIA_TYPE: Final = "text/event-stream"
_KEEPALIVE: Final = b": it goes on\n\n"
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_EVENTS: Final = """\
Events `log` carry a log entry as JSON, and its id as theirs; comments keep the connection; one event `end` with
the work order's id, status and stage is the last. Who comes back with `Last-Event-ID` is told what follows it."""
_EVENT: Final = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "id": {"type": "string"},
        "event": {"enum": ["log", "end", "error"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}
"""The data of `log` are an entry; of `end` an id, a status and a stage; of `error` why it ended too soon."""
_END: Final = "#end"
"""What follows the last entry's id in the id of the last event."""
_NO_MORE: Final = "The work order is closed, and everything was told: do not come back."


class EventStream(StreamingResponse):
    """The media type of server-sent events."""

    media_type = _MEDIA_TYPE


@router.get(
    "/{order_id}/logs/stream",
    response_class=EventStream,
    responses={
        HTTPStatus.OK: {"description": _EVENTS, "content": {_MEDIA_TYPE: {"schema": _EVENT}}},
        HTTPStatus.NO_CONTENT: {"description": _NO_MORE},
        **problems(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY),
    },
)
async def stream_logs(order_id: OrderId, asked: Asked, last_event_id: Annotated[str, Header()] = "") -> Response:
    """Follow what the agents say and do, until the work order is closed."""
    task = await asked.orders.task(order_id)
    after = last_event_id.removesuffix(_END)
    knows_the_end = task.is_closed and last_event_id.endswith(_END)
    if knows_the_end and not (await asked.logs(order_id, after=after, limit=1)).log_entries:
        return Response(status_code=HTTPStatus.NO_CONTENT)
    return EventStream(_events(asked, order_id, after), headers=_HEADERS)


async def _events(asked: Operations, order_id: str, after: str) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    told_at = loop.time()
    yield _KEEPALIVE
    try:
        async for entries in follow_logs(asked, order_id, after):
            if entries:
                after = entries[-1].id
                yield b"".join(_event("log", entry.model_dump(mode="json"), entry.id) for entry in entries)
            elif loop.time() - told_at < _KEEPALIVE_SECONDS:
                continue
            else:
                yield _KEEPALIVE
            told_at = loop.time()
        task = await asked.orders.task(order_id)
    except (SeptetError, OSError, RPCError) as error:
        said = told(refused(error) if isinstance(error, RPCError) else error).error
        yield _event("error", said.model_dump(mode="json", include={"type", "message", "remedy"}))
        return
    end = {"id": task.id, "status": task.status.value, "stage": task.stage.value}
    yield _event("end", end, f"{after}{_END}")


def _event(kind: str, data: dict[str, Any], event_id: str = "") -> bytes:
    """Return one event. JSON has no line breaks, so that its data is one line."""
    number = f"id: {event_id}\n" if event_id else ""
    return f"{number}event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
