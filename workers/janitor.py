"""The schedule of a host's janitor."""

from datetime import timedelta
from typing import Final

import structlog
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
)
from temporalio.service import RPCError

from septet.settings import Settings
from workflows.janitor import Janitor

_EVERY: Final = timedelta(hours=6)
_JITTER: Final = timedelta(minutes=30)

_log = structlog.get_logger()


def schedule_id(host_id: str) -> str:
    """Return the id of a host's schedule."""
    return f"septet-janitor-{host_id}"


async def schedule_janitor(client: Client, settings: Settings, host_id: str, host_queue: str) -> None:
    """Have a host swept every few hours; a schedule that is there stays as somebody may have changed it.

    A server that refuses takes nothing but the sweeping.
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
    )
    try:
        await client.create_schedule(schedule_id(host_id), schedule)
    except ScheduleAlreadyRunningError:
        return
    except RPCError as error:
        _log.warning("janitor_not_scheduled", host=host_id, error=error.message)
