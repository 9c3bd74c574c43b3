"""Send the log entries of a work order's agents as server-sent events."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Response
from fastapi.responses import StreamingResponse
from temporalio.service import RPCError

from clients.disk.agent_logs import AgentLogs
from clients.error_reply import error_reply
from clients.http.bodies import Connected, OrderId
from clients.http.problems import problems
from clients.operations.operations import Operations
from septet.contracts.host_files import LogEntry
from septet.errors import SeptetError

router = APIRouter(prefix="/agent-work-orders", tags=["work orders"])

_KEEPALIVE_SECONDS: Final = 15.0
_MEDIA_TYPE: Final = "text/event-stream"
_KEEPALIVE: Final = b": it goes on\n\n"
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_EVENTS: Final = """\
Each `log` event carries one log entry as JSON, under the entry's id. Comments keep the connection open. The last
event is `end`, with the work order's id, status and stage. To get what follows it, send `Last-Event-ID`."""
_EVENT: Final = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "id": {"type": "string"},
        "event": {"enum": ["log", "end", "error"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}
"""The schema of an event. The data of `log` is an entry, the data of `end` is an id, a status and a stage, and the
data of `error` is the reason why the stream ended too soon."""
_END: Final = "#end"
"""The suffix of the last event's id, after the id of the last log entry."""
_NO_MORE: Final = "The work order is closed, and everything was sent: do not reconnect."


class EventStream(StreamingResponse):
    """A response of server-sent events."""

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
async def stream_logs(
    order_id: OrderId, operations: Connected, last_event_id: Annotated[str, Header()] = ""
) -> Response:
    """Follow what the agents say and do, until the work order is closed."""
    task = await operations.orders.get(order_id)
    after = last_event_id.removesuffix(_END)
    knows_the_end = task.is_closed and last_event_id.endswith(_END)
    if knows_the_end and not (await operations.reading.logs(order_id, after=after, limit=1)).log_entries:
        return Response(status_code=HTTPStatus.NO_CONTENT)
    return EventStream(_events(operations, order_id, after), headers=_HEADERS)


async def _events(operations: Operations, order_id: str, after: str) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    sent_at = loop.time()
    yield _KEEPALIVE
    try:
        async for entries in _follow(operations, order_id, after):
            if entries:
                after = entries[-1].id
                yield b"".join(_event("log", entry.model_dump(mode="json"), entry.id) for entry in entries)
            elif loop.time() - sent_at < _KEEPALIVE_SECONDS:
                continue
            else:
                yield _KEEPALIVE
            sent_at = loop.time()
        task = await operations.orders.get(order_id)
    except (SeptetError, OSError, RPCError) as error:
        reason = error_reply(error).error
        yield _event("error", reason.model_dump(mode="json", include={"type", "message", "remedy"}))
        return
    end = {"id": task.id, "status": task.status.value, "stage": task.stage.value}
    yield _event("end", end, f"{after}{_END}")


async def _follow(operations: Operations, order_id: str, after: str) -> AsyncIterator[list[LogEntry]]:
    """Yield lists of new log entries until the work order is closed; start after the entry `after`."""
    logs = AgentLogs(operations.state, order_id)
    end = asyncio.create_task(operations.orders.wait_for_end(order_id))
    try:
        first, over = True, False
        while not over:
            over = end.done()  # before the read: it then includes all that was written before the end
            entries = await asyncio.to_thread(list, logs.new_entries())
            known = (number for number, entry in enumerate(entries, 1) if entry.id == after)
            yield entries[next(known, 0) if first else 0 :]
            first = False
            await asyncio.wait([end], timeout=0.5)
        await end
    finally:
        end.cancel()
        with suppress(asyncio.CancelledError):
            await end


def _event(kind: str, data: dict[str, Any], event_id: str = "") -> bytes:
    """Return one server-sent event, with its data as JSON on one line."""
    number = f"id: {event_id}\n" if event_id else ""
    return f"{number}event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
