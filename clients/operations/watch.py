"""Watch an open work order: its workflow's state, and its agent and workspace on this host."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from temporalio.client import WorkflowExecutionDescription
from temporalio.service import RPCError

from clients.disk.workspace_view import WorkspaceView
from clients.executions.news import News, follow_workflow
from clients.operations.absence import Absence
from clients.operations.under_way import elapsed_seconds
from clients.temporal.work_orders import WorkOrders
from septet.contracts.replies import NOBODY_WORKS, RUNNING, WatchReply
from septet.contracts.task import Task
from septet.errors import ServerNotReachedError
from workflows.wire.search_attributes import HOST

_LOOK_SECONDS: Final = 0.5
"""The pause between reads of this host's disk; new events of the server arrive without polling."""
_DESCRIBE_SECONDS: Final = 2.0
"""The pause between reads of the reason why a work order waits; such a read costs no Temporal Action."""
_FIRST_ENTRIES: Final = 200
"""The most log entries in the first reply."""


@dataclass(slots=True)
class Watch:
    """Reads one work order from its workflow and from this host's disk, once or after each change."""

    orders: WorkOrders
    view: WorkspaceView
    nobody_works: Callable[[WorkflowExecutionDescription], Awaitable[str]]
    patience: timedelta = timedelta(0)
    """The longest absence of the server before the watch ends with an error."""
    _nobody: str = ""
    _last: WatchReply | None = None
    _waiting: str | None = None
    _stuck: str | None = None
    _elsewhere: str = ""
    _described_at: float = -_DESCRIBE_SECONDS

    async def look(self) -> WatchReply:
        """Return the work order as of now, with the log entries since the last call.

        Raises:
            NotFoundError: The work order does not exist.
            ServerNotReachedError: The server does not answer.
        """
        order_id = self.view.order_id
        row = await self.orders.describe(order_id)
        task = await self._ask_for(row)
        asks = not (task.is_closed or task.stuck or self._nobody)
        return await self._see(task, await self.orders.running_step(order_id) if asks else "", row)

    async def looks(self) -> AsyncGenerator[WatchReply, None]:
        """Yield the work order now and after each change, until the work order is closed.

        A worker is queried only after new events, so an unchanged work order costs no Temporal Action.

        Raises:
            NotFoundError: The work order does not exist.
            ServerNotReachedError: The server has not answered for longer than `patience`.
        """
        order_id = self.view.order_id
        absence = Absence(order_id, patience=self.patience)
        await self.orders.describe(order_id)
        async with follow_workflow(self.orders.handle(order_id)) as news:
            await news.come_within(_LOOK_SECONDS)
            last = await self._ask(news)
            yield last
            while not last.task.is_closed:
                is_news = await news.come_within(_LOOK_SECONDS)
                try:
                    asks = is_news or absence.lasts
                    look = await (self._ask(news) if asks else self._see(last.task, news.running_step))
                    absence.end()
                except (ServerNotReachedError, RPCError) as error:
                    words = absence.bear(error)  # agents continue while the server is away
                    look = await asyncio.to_thread(self._reply, last.task, last.running_step, None)
                    look = look.model_copy(update={"waiting_for": words})
                if look.log_entries or _lasting_part(look) != _lasting_part(last):
                    last = look
                    yield last

    async def _ask(self, news: News) -> WatchReply:
        row = await self.orders.describe(self.view.order_id)
        task = await self._ask_for(row)
        if news.has_results and not task.steps:  # no worker has answered
            news.come_again()
            task = await self.orders.without_worker(row)
        return await self._see(task, news.running_step, row)

    async def _ask_for(self, row: WorkflowExecutionDescription) -> Task:
        """Return the work order from a worker, or from the server if no worker runs."""
        host = row.typed_search_attributes.get(HOST, "")
        self._elsewhere = "" if self.view.state.is_of_host(host) else host
        self._nobody = await self.nobody_works(row)
        return await (self.orders.without_worker(row) if self._nobody else self.orders.get_of_row(row))

    async def _see(self, task: Task, running: str, row: WorkflowExecutionDescription | None = None) -> WatchReply:
        """Return the reply for a task and its step `running`; `row`, a fresh description, saves a request."""
        now = asyncio.get_running_loop().time()
        has_moved = self._last is not None and self._last.task.status is not task.status
        if task.is_closed:
            self._waiting, self._stuck, self._nobody = None, None, ""
        elif has_moved or now - self._described_at >= _DESCRIBE_SECONDS:
            row = row or await self.orders.describe(self.view.order_id)
            self._stuck, self._described_at = await self.orders.stuck_cause(row), now
            self._waiting = await self.orders.waits_of(row) if self._stuck is None else None
            self._nobody = await self.nobody_works(row)
        task = task.model_copy(update={"stuck": self._stuck})
        running = "" if task.is_closed or task.stuck else running
        self._last = await asyncio.to_thread(self._reply, task, running, self._waiting)
        return self._last

    def _reply(self, task: Task, running: str, waiting: str | None) -> WatchReply:
        entries = self.view.new_entries()
        before = self._last.task if self._last is not None else None
        return WatchReply(
            task=task,
            running_step=running,
            standing=NOBODY_WORKS if self._nobody else RUNNING,
            waiting_for=self._nobody or task.question or waiting,
            doing=self.view.doing if running and not self._nobody else None,
            tokens=task.usage.tokens + (self.view.tokens_of(running) if running else 0),
            cost_usd=task.usage.cost_usd,
            elapsed_seconds=elapsed_seconds(task),
            plan=self.view.plan(task.plan_path),
            diff=self.view.diff(now=before is None or task.steps != before.steps),
            log_entries=entries[-_FIRST_ENTRIES:] if before is None else entries,
            elsewhere=self._elsewhere,
        )


def _lasting_part(look: WatchReply) -> WatchReply:
    """Return a reply without elapsed time and log entries, so that a comparison ignores both."""
    return look.model_copy(update={"elapsed_seconds": 0.0, "log_entries": ()})
