"""Passes of the janitor whose histories are recorded, each with a host that makes it go its way."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from temporalio import activity
from temporalio.client import Client, WorkflowHistory
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from septet.contracts.steps import SweepCall
from septet.janitor.terms import SweepReport, SweptItem
from workflows.board.janitor import Janitor

QUEUE: Final = "janitor-histories"
_WITHIN_SECONDS: Final = 60.0


def _swept() -> SweepReport:
    gone = SweptItem(kind="workspace", name="wo-1", snapshot="wo-1/0009-checkpoint")
    held = SweptItem(kind="runs", name="wo-2", why="somebody holds its lock")
    return SweepReport(
        host="host", removed=(gone,), removed_count=1, refused=(held,), refused_count=1, kept_count=3
    )


def _broken() -> SweepReport:
    raise ApplicationError("The disk is read-only.", type="DiskReadOnly", non_retryable=True)


PASSES: Final[dict[str, Callable[[], SweepReport]]] = {"swept": _swept, "not-swept": _broken}
"""By name: what the host answers."""


async def history_of_pass(client: Client, name: str) -> WorkflowHistory:
    """Let one pass be made on a real server, and return its history."""

    @activity.defn(name="sweep_host")
    async def sweep_host(_call: SweepCall) -> SweepReport:
        return PASSES[name]()

    activities: list[Callable[..., Any]] = [sweep_host]
    async with Worker(client, task_queue=QUEUE, workflows=[Janitor], activities=activities, identity="recorder"):
        handle = await client.start_workflow(Janitor.run, QUEUE, id=f"janitor-{name}", task_queue=QUEUE)
        await asyncio.wait_for(handle.result(), _WITHIN_SECONDS)
        return await handle.fetch_history()
