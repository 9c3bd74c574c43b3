"""Send changes to an open page in a browser: pieces of HTML in server-sent events."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from temporalio.service import RPCError

from clients.operations.operations import Operations
from clients.page.rendering import text_of
from clients.page.standing import BoardView, view_of_board
from clients.pipelines.client import KnownViews
from clients.pipelines.rows import work_ahead
from septet.contracts.costs import Estimate
from septet.contracts.replies import DetailReply, WatchReply
from septet.errors import SeptetError
from septet.pipelines.views import PipelineReply, PipelineView

Answer = TypeVar("Answer")

_LOOK_SHARE: Final = 5
"""The least pause between reads, in multiples of the read's duration: a large board is read more rarely."""
_COME_BACK_MS: Final = 2000
OF_A_LOOK: Final = ("overview", "steps", "plan", "diff")
"""The pieces of a work order's page that are made only from a `WatchReply`."""


def board_changes(operations: Operations, project: str | None) -> AsyncGenerator[bytes, None]:
    """Yield an event with the board as HTML, now and after each change."""
    return _changes("board", "board", lambda: board_view(operations, project))


async def board_view(operations: Operations, project: str | None) -> BoardView:
    """Return the board as the page shows it."""
    reply, nobody = await asyncio.gather(operations.board.page(project), operations.nobody_works())
    return await asyncio.to_thread(view_of_board, operations.state, reply, nobody)


def pipelines_changes(operations: Operations) -> AsyncGenerator[bytes, None]:
    """Yield an event with the list of pipelines as HTML, now and after each change."""
    views: KnownViews = {}
    return _changes("pipelines", "answer", lambda: operations.pipelines.list(known_views=views))


async def pipeline_changes(operations: Operations, pipeline_id: str) -> AsyncGenerator[bytes, None]:
    """Yield an event with a pipeline as HTML, now and at each change; the last event marks the pipeline's end."""
    async with aclosing(operations.pipelines.views(pipeline_id)) as views:
        last: PipelineView | None = None
        estimate: Estimate | None = None
        async for view in views:
            if view != last:
                if last is None or work_ahead(view.issues) != work_ahead(last.issues):
                    estimate = await operations.for_pipelines.estimate_rest(view)
                last = view
                answer = PipelineReply(pipeline=view, estimate=estimate)
                html = await asyncio.to_thread(text_of, "_pipeline.html", answer=answer)
                yield _event("put", {"id": "pipeline", "html": html})
    yield _event("over", {})


async def _changes(name: str, variable: str, ask: Callable[[], Awaitable[Answer]]) -> AsyncGenerator[bytes, None]:
    """Yield an event with a piece of the page as HTML, now and whenever the result of `ask` changes."""
    loop, last = asyncio.get_running_loop(), None
    while True:
        began = loop.time()
        answer = await ask()
        if answer != last:
            last = answer
            html = await asyncio.to_thread(text_of, f"_{name}.html", **{variable: answer})
            yield _event("put", {"id": name, "html": html})
        await asyncio.sleep(max(2.0, _LOOK_SHARE * (loop.time() - began)))


async def work_order_changes(operations: Operations, order_id: str, ui: object) -> AsyncGenerator[bytes, None]:
    """Yield events with the changed pieces of a work order's page; the last event marks the work order's end."""
    pieces = Pieces(ui)
    detail: DetailReply | None = None
    kind = "put"
    async with aclosing(operations.reading.watch(order_id).looks()) as looks:
        async for look in looks:
            if detail is None or _facts(look) != _facts(detail):
                detail = await operations.reading.detail(order_id)
            for name, html in (await asyncio.to_thread(pieces.changed_pieces, look, detail)).items():
                yield _event("put", {"id": name, "html": html})
            if look.log_entries or kind == "put":
                html = await asyncio.to_thread(text_of, "_entries.html", entries=look.log_entries)
                yield _event(kind, {"id": "transcript", "html": html})
                kind = "add"
    yield _event("over", {})


@dataclass(slots=True)
class Pieces:
    """Renders the pieces of a work order's page, and remembers what one browser has received."""

    ui: object
    _sources: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    _html: dict[str, str] = field(default_factory=dict)

    def changed_pieces(self, look: WatchReply, detail: DetailReply) -> dict[str, str]:
        """Return the changed pieces as HTML, by name.

        Call this method outside the event loop, because a long plan or patch takes long to render.
        """
        path = look.plan.path if look.plan is not None else None
        plan = look.plan, look.task.plan_path, look.task.waits_for_a_decision
        sources = {"plan": plan, "diff": (look.diff, path)}
        changes = {}
        for name in (*OF_A_LOOK, "record"):
            if name in sources and self._sources.get(name) == sources[name]:
                continue
            html = text_of(f"_{name}.html", look=look, detail=detail, ui=self.ui)
            if self._html.get(name) != html:
                changes[name] = html
        self._sources = sources
        self._html |= changes
        return changes


def _facts(reply: WatchReply | DetailReply) -> tuple[object, ...]:
    """Return the facts of a reply that change whenever the history, runs or rescues may have changed."""
    task = reply.task
    return task.status, task.stage, task.updated_at, len(task.steps), task.rescues


async def keep_alive(events: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    """Yield the events, and after each ten idle seconds a comment, so that the server notices a closed browser.

    After an error the stream ends, and the browser connects again by itself.
    """
    yield f"retry: {_COME_BACK_MS}\n\n".encode()
    async with aclosing(events):
        following = asyncio.ensure_future(_next_event(events))
        try:
            while True:
                if not (await asyncio.wait([following], timeout=10.0))[0]:
                    yield b": it goes on\n\n"
                    continue
                event = following.result()
                if event is None:
                    return
                yield event
                following = asyncio.ensure_future(_next_event(events))
        finally:
            following.cancel()
            while not following.done():  # the server cancels again while it waits
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([following])


async def _next_event(events: AsyncIterator[bytes]) -> bytes | None:
    try:
        return await anext(events, None)
    except (SeptetError, OSError, RPCError):
        return None


def _event(kind: str, data: dict[str, Any]) -> bytes:
    """Return one server-sent event, with its data as JSON on one line."""
    return f"event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
