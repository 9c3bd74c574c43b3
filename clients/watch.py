"""A work order as it goes on: what its workflow says, and what this host sees of its agent and its workspace."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from clients.disk.workspace_view import WorkspaceView
from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import Status
from septet.contracts.replies import WatchReply
from septet.contracts.task import Task

_LOOK_SECONDS: Final = 0.5
_FIRST_ENTRIES: Final = 200
"""Of a work order that has gone on for long."""


@dataclass(slots=True)
class Watch:
    """One work order under somebody's eyes."""

    orders: WorkOrders
    view: WorkspaceView
    _last: WatchReply | None = None

    async def look(self) -> WatchReply:
        """Return the work order as of now; its log entries are those since the last look.

        Raises:
            NotFoundError: There is no such work order.
            ServerNotReachedError: Nobody answers.
        """
        order_id = self.view.order_id
        task = await self.orders.get(order_id)
        running = "" if task.is_closed else await self.orders.running_step(order_id)
        waiting = None if task.is_closed else await self.orders.waiting_for(order_id)
        self._last = await asyncio.to_thread(self._reply, task, running, waiting)
        return self._last

    async def looks(self) -> AsyncIterator[WatchReply]:
        """Yield the work order now, whenever anything of it has changed, and last when it is closed.

        Raises:
            NotFoundError: There is no such work order.
            ServerNotReachedError: Nobody answers.
        """
        last = await self.look()
        yield last
        while not last.task.is_closed:
            await asyncio.sleep(_LOOK_SECONDS)
            look = await self.look()
            if look.log_entries or _lasting_part(look) != _lasting_part(last):
                last = look
                yield last

    def _reply(self, task: Task, running: str, waiting: str | None) -> WatchReply:
        entries = self.view.new_entries()
        before = self._last.task if self._last is not None else None
        return WatchReply(
            task=task,
            running_step=running,
            waiting_for=waiting,
            doing=self.view.doing if running else None,
            tokens=task.usage.tokens + (self.view.tokens_of(running) if running else 0),
            cost_usd=task.usage.cost_usd,
            elapsed_seconds=elapsed_seconds(task),
            plan=self.view.plan(task.plan_path),
            diff=self.view.diff(now=before is None or task.steps != before.steps),
            log_entries=entries[-_FIRST_ENTRIES:] if before is None else entries,
        )


def _lasting_part(look: WatchReply) -> WatchReply:
    """Return what is no news when it is seen again: time passes and entries have been told."""
    return look.model_copy(update={"elapsed_seconds": 0.0, "log_entries": ()})


def elapsed_seconds(task: Task) -> float:
    """Return how long a work order has gone on since it was created: until now, or until it was closed."""
    if not task.created_at:
        return 0.0
    return round(max((_end(task) - datetime.fromisoformat(task.created_at)).total_seconds(), 0.0), 1)


def _end(task: Task) -> datetime:
    """Return when a work order was closed; the row of a completed one goes on with its pull request."""
    last = task.steps[-1] if task.steps else None
    if task.status is Status.COMPLETED and last is not None and last.timestamp:
        return datetime.fromisoformat(last.timestamp) + timedelta(seconds=last.duration_seconds)
    return datetime.fromisoformat(task.updated_at) if task.is_closed and task.updated_at else datetime.now(UTC)
