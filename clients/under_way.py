"""Read the running step of an open work order from this host's disk, before the step ends."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from septet.contracts.names import Status
from septet.contracts.replies import NOBODY_WORKS, RUNNING, LogEntry
from septet.contracts.task import Task

if TYPE_CHECKING:
    from clients.disk.workspace_view import WorkspaceView
    from clients.operations import Operations


@dataclass(frozen=True, slots=True)
class StepUnderWay:
    """A step that has begun and has not ended."""

    step: str
    standing: str = RUNNING
    """Whether the step runs, waits, or has no worker."""
    tokens: int = 0
    """The tokens of the step's last agent so far, as far as this host has its stream."""
    doing: LogEntry | None = None
    """The agent's tool call that has no result yet."""


async def step_under_way(operations: "Operations", task: Task) -> StepUnderWay | None:
    """Return the running step of an open work order; if no worker runs, the step that the server has pending.

    Raises:
        NotFoundError: There is no such work order.
        ServerNotReachedError: The server refused.
    """
    from clients.disk.workspace_view import WorkspaceView
    from clients.temporal.steps_in_history import pending_step

    if task.status not in {Status.RUNNING, Status.WAITING} or task.stuck:
        return None
    row = await operations.orders.describe(task.id)
    nobody = await operations.nobody_works_on(row)
    step = pending_step(row) if nobody else await operations.orders.running_step(task.id)
    if not step:
        return None
    standing = NOBODY_WORKS if nobody else "waiting" if task.status is Status.WAITING else RUNNING
    return await asyncio.to_thread(
        _look, WorkspaceView(operations.state, operations.git_env, task.id), step, standing
    )


def _look(view: "WorkspaceView", step: str, standing: str) -> StepUnderWay:
    view.new_entries()
    return StepUnderWay(step, standing, view.tokens_of(step), view.doing)
