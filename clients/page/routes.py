"""The page's routes: the board, a work order, pipelines, and their live changes."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse
from fastapi.routing import APIRoute
from pydantic import ValidationError
from temporalio.service import RPCError

from clients.error_reply import error_reply
from clients.operations.operations import Operations
from clients.page.access import PageAccess
from clients.page.live import (
    board_changes,
    board_view,
    keep_alive,
    pipeline_changes,
    pipelines_changes,
    work_order_changes,
)
from clients.page.rendering import HEADERS, STATIC, render, static_file, text_of
from clients.pipelines.rows import OVER
from clients.starting.agents import worker_agents
from clients.starting.checks import checked_order
from septet.agents.clis.registry import ADAPTERS
from septet.contracts.order import WorkOrderInput
from septet.errors import InvalidInputError, NotFoundError, SeptetError
from workers.server.server_file import read_server_file


@dataclass(frozen=True, slots=True)
class TemporalUi:
    """The addresses of work orders and pipelines in Temporal's web UI."""

    namespace_url: str

    @property
    def board(self) -> str:
        """The address of the list of work orders."""
        return self._list("WorkOrder")

    @property
    def pipelines(self) -> str:
        """The address of the list of pipelines."""
        return self._list("Pipeline")

    def work_order(self, order_id: str) -> str:
        """Return the address of one work order or one pipeline."""
        return f"{self.namespace_url}/workflows/{quote(order_id, safe='')}"

    def _list(self, kind: str) -> str:
        query = f'WorkflowType="{kind}"'
        return f"{self.namespace_url}/workflows?query={quote(query)}"


def temporal_ui(operations: Operations, address: str | None) -> TemporalUi | None:
    """Return the addresses in the UI at `address`, by default this host's embedded UI; `None` without a UI."""
    client = operations.client
    if address is None:
        server = read_server_file(operations.state)
        if server is None or server.address != client.service_client.config.target_host:
            return None
        address = server.ui
    return TemporalUi(f"{address.rstrip('/')}/namespaces/{quote(client.namespace, safe='')}")


_ANY_TITLE: Final = "Any"
"""The title of a work order that is only estimated; the estimate does not depend on the title."""
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def page_router(operations: Operations, key: str | None, ui: TemporalUi | None, who: str) -> APIRouter:
    """Return the page's routes.

    A `key` of `None` admits every browser. `who` is the name that histories show for decisions on the page.
    """
    access = PageAccess(key)

    class Route(APIRoute):
        def get_route_handler(self) -> Handler:
            return _guard(super().get_route_handler(), access)

    router = APIRouter(route_class=Route, include_in_schema=False)
    for path, route in _Views(operations, ui, who).routes().items():
        router.add_api_route(path, route, methods=["GET"])
    return router


def _guard(handler: Handler, access: PageAccess) -> Handler:
    """Return a handler that checks the access to the page, and shows an error as a page."""

    async def guarded_handler(request: Request) -> Response:
        response = access.refusal(request)
        if response is None:
            try:
                response = await handler(request)
            except (SeptetError, OSError, RPCError) as error:
                missing = isinstance(error, (NotFoundError, InvalidInputError))
                status = HTTPStatus.NOT_FOUND if missing else HTTPStatus.SERVICE_UNAVAILABLE
                title = "There is nothing here" if missing else "This cannot be shown now"
                reason = error_reply(error).error
                words = {"title": title, "message": reason.message, "remedy": reason.remedy}
                response = render("refused.html", status, **words)
        response.headers.update(HEADERS)
        return response

    return guarded_handler


@dataclass(frozen=True, slots=True)
class _Views:
    operations: Operations
    ui: TemporalUi | None
    who: str

    def routes(self) -> dict[str, Callable[..., Awaitable[Response]]]:
        """Return the handler of each path."""
        return {
            "/": self.board,
            "/live": self.board_live,
            "/new": self.new,
            "/new/estimate": self.estimate,
            "/work-orders/{order_id}": self.work_order,
            "/work-orders/{order_id}/live": self.work_order_live,
            "/pipeline": self.pipelines,
            "/live/pipelines": self.pipelines_live,
            "/pipeline/{pipeline_id}": self.pipeline,
            "/pipeline/{pipeline_id}/live": self.pipeline_live,
            "/static/{name}": self.static,
        }

    async def board(self, project: str = "") -> Response:
        """Show the board, of all projects or of one."""
        board = await board_view(self.operations, project or None)
        return await self._render("board.html", board=board, project=project)

    async def board_live(self, project: str = "") -> Response:
        """Send the board whenever it changes."""
        return _stream(board_changes(self.operations, project or None))

    async def new(self) -> Response:
        """Show the form that starts a work order."""
        reply = await self.operations.board.page()
        repositories = sorted({task.repository_url for tasks in reply.stages.values() for task in tasks} - {""})
        hosts = await worker_agents(self.operations.client, self.operations.task_queue)
        agents = sorted(set().union(*(host.agents for host in hosts)) or ADAPTERS)
        return await self._render("new.html", repositories=repositories, agents=agents)

    async def estimate(self, repository_url: str = "", agent: str = "") -> Response:
        """Show what a work order will cost in the form's repository; nothing if Septet refuses that repository."""
        text = ""
        with suppress(SeptetError, ValidationError):
            order = WorkOrderInput(repository=repository_url, title=_ANY_TITLE, agent=agent or None)
            order = checked_order(order, is_here=self.operations.is_here)
            text = (await self.operations.starting.estimate(order)).text
        return await self._render("_estimate.html", text=text)

    async def work_order(self, order_id: str) -> Response:
        """Show one work order."""
        look = await self.operations.reading.watch(order_id).look()
        detail = await self.operations.reading.detail(order_id)
        return await self._render("work_order.html", look=look, detail=detail)

    async def work_order_live(self, order_id: str) -> Response:
        """Send the changes of a work order's page until the work order is closed."""
        await self.operations.orders.get(order_id)
        return _stream(work_order_changes(self.operations, order_id, self.ui))

    async def pipelines(self) -> Response:
        """Show the pipelines, open ones first."""
        reply = await self.operations.pipelines.list()
        return await self._render("pipelines.html", answer=reply)

    async def pipelines_live(self) -> Response:
        """Send the list of pipelines whenever it changes."""
        return _stream(pipelines_changes(self.operations))

    async def pipeline(self, pipeline_id: str) -> Response:
        """Show one pipeline."""
        reply = await self.operations.for_pipelines.show(pipeline_id)
        is_over = reply.pipeline.status in OVER
        return await self._render("pipeline.html", answer=reply, is_over=is_over)

    async def pipeline_live(self, pipeline_id: str) -> Response:
        """Send the changes of a pipeline's page until the pipeline is over."""
        await self.operations.pipelines.show(pipeline_id)
        return _stream(pipeline_changes(self.operations, pipeline_id))

    async def static(self, name: str) -> Response:
        """Send one of the page's own files."""
        if name not in STATIC:
            raise NotFoundError(f"The page has no file {name}.")
        return Response(static_file(name), media_type=STATIC[name])

    async def _render(self, template: str, **values: object) -> Response:
        text = await asyncio.to_thread(partial(text_of, template, ui=self.ui, who=self.who, **values))
        return HTMLResponse(text)


def _stream(changes: AsyncGenerator[bytes, None]) -> Response:
    return StreamingResponse(keep_alive(changes), media_type="text/event-stream")
