"""The schedule of a host's janitor."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Final

import structlog
from temporalio.client import (
    Client,
    Schedule,
    ScheduleAction,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError, RPCStatusCode

from septet.settings import Settings
from workers.beside import beside
from workflows.board.janitor import Janitor

_EVERY: Final = timedelta(hours=6)
_JITTER: Final = timedelta(minutes=30)
PASSES: Final = 28
"""The number of passes in a week. If a host has no worker for longer, its next worker schedules passes anew."""

_log = structlog.get_logger()


def schedule_id(host_id: str) -> str:
    """Return the id of a host's schedule."""
    return f"septet-janitor-{host_id}"


@asynccontextmanager
async def scheduling_janitor(
    client: Client, settings: Settings, host_id: str, host_queue: str
) -> AsyncIterator[None]:
    """Schedule the sweeps of a host every few hours, during the block and for a week after it."""
    await schedule_janitor(client, settings, host_id, host_queue)

    async def renew() -> None:
        while True:
            await asyncio.sleep(_EVERY.total_seconds())
            await schedule_janitor(client, settings, host_id, host_queue)

    async with beside(renew()):
        yield


async def schedule_janitor(client: Client, settings: Settings, host_id: str, host_queue: str) -> None:
    """Schedule sweeps of a host every few hours, for a week from now; a later call extends the week.

    A gone host's schedule therefore runs out, and Temporal removes the schedule. A person's changes of an existing
    schedule stay, but the schedule's input is sealed anew. If the server refuses, only the sweeps are missing.

    An existing schedule is not created again: each creation that the server refuses leaves a branch of history in
    the server's database for months.
    """
    schedule = Schedule(
        action=ScheduleActionStartWorkflow(
            Janitor.run,
            host_queue,
            id=schedule_id(host_id),
            task_queue=settings.task_queue,
            static_summary=f"What host {host_id} kept long enough",
        ),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=_EVERY)], jitter=_JITTER),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP),
        state=ScheduleState(limited_actions=True, remaining_actions=PASSES),
    )
    try:
        if await _renew(client, host_id, schedule.action):
            return
        with suppress(ScheduleAlreadyRunningError):  # another worker of the host has just created it
            await client.create_schedule(schedule_id(host_id), schedule)
    except RPCError as error:
        _log.warning("janitor_not_scheduled", host=host_id, error=error.message)


async def _renew(client: Client, host_id: str, action: ScheduleAction) -> bool:
    """Extend a schedule to a week from now, and seal its input with the current key; return whether it exists.

    Raises:
        RPCError: The server refused.
    """

    def renew(current: ScheduleUpdateInput) -> ScheduleUpdate:
        schedule = current.description.schedule
        state = replace(schedule.state, limited_actions=True, remaining_actions=PASSES)
        return ScheduleUpdate(replace(schedule, action=action, state=state))

    try:
        await client.get_schedule_handle(schedule_id(host_id)).update(renew)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return True
