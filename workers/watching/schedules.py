"""The schedules on the server: create a host's janitor, and seal intakes again after a change of the keys."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final

import structlog
from temporalio.api.common.v1 import Payload
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
from temporalio.converter import PayloadCodec
from temporalio.service import RPCError, RPCStatusCode

from septet.contracts.intake import INTAKE_PREFIX
from septet.contracts.seal import KEY_CHECK, KEY_ID, refusal_of
from septet.errors import SealedError
from septet.settings import Settings
from workers.beside import beside, repeating
from workflows.janitor import Janitor

_EVERY: Final = timedelta(hours=6)
PASSES: Final = 28
"""The number of passes in a week; the schedule of a host without a worker ends after these passes."""

_log = structlog.get_logger()


def schedule_id(host_id: str) -> str:
    """Return the id of the schedule of a host's janitor."""
    return f"septet-janitor-{host_id}"


@asynccontextmanager
async def scheduling_janitor(
    client: Client, settings: Settings, host_id: str, host_queue: str
) -> AsyncIterator[None]:
    """Schedule the janitor of a host every few hours, during the block and for a week after it."""
    await schedule_janitor(client, settings, host_id, host_queue)

    async def renew() -> None:
        while True:
            await asyncio.sleep(_EVERY.total_seconds())
            await schedule_janitor(client, settings, host_id, host_queue)

    async with beside(renew()):
        yield


async def schedule_janitor(client: Client, settings: Settings, host_id: str, host_queue: str) -> None:
    """Schedule a host's janitor every few hours, for a week from now; a later call extends the week.

    So the schedule of a lost host ends. A person's changes of the schedule stay, but the schedule's input is
    sealed again. If the server refuses, the worker runs without a janitor.

    An existing schedule is not created again, because each refused creation leaves data in the server's database.
    """
    schedule = Schedule(
        action=ScheduleActionStartWorkflow(
            Janitor.run,
            host_queue,
            id=schedule_id(host_id),
            task_queue=settings.task_queue,
            static_summary=f"What host {host_id} kept long enough",
        ),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=_EVERY)], jitter=timedelta(minutes=30)),
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
    """Extend a schedule to a week from now, and seal its input again; return whether the schedule exists."""

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


def sealing_intakes(client: Client, task_queue: str) -> AbstractAsyncContextManager[None]:
    """Seal the inputs of a queue's intakes again after each change of the keys, while the block runs."""
    if client.data_converter.payload_codec is None:
        return nullcontext()
    look = partial(seal_intakes_anew, client, task_queue)
    return repeating(look, _EVERY.total_seconds(), "intakes_not_sealed")


async def seal_intakes_anew(client: Client, task_queue: str) -> None:
    """Seal the inputs of a queue's intakes with the current key.

    An input stays if the current key sealed it already, if no key here opens it, or if workers refuse it.

    Raises:
        RPCError: The server refused.
    """
    codec = client.data_converter.payload_codec
    if codec is None:
        return

    async def seal(update: ScheduleUpdateInput) -> ScheduleUpdate | None:
        action = update.description.schedule.action
        if not isinstance(action, ScheduleActionStartWorkflow) or action.task_queue != task_queue:
            return None
        try:
            is_sealed = await _seal_action(codec, action)
        except SealedError as error:
            _log.warning("intake_not_opened", intake=update.description.id, error=error.message)
            return None
        return ScheduleUpdate(update.description.schedule) if is_sealed else None

    async for entry in await client.list_schedules():
        if entry.id.startswith(INTAKE_PREFIX):
            await client.get_schedule_handle(entry.id).update(seal)


async def _seal_action(codec: PayloadCodec, action: ScheduleActionStartWorkflow) -> bool:
    """Seal a schedule's input with the current key; return `False` if nothing changed."""
    summary = [action.static_summary] if isinstance(action.static_summary, Payload) else []
    before = [*action.args, *summary]
    opened = await codec.decode(before)
    if any(refusal_of(each.metadata) for each in opened):
        return False
    after = await codec.encode(opened)
    if _keys_of(before) == _keys_of(after):
        return False
    action.args = after[: len(action.args)]
    action.static_summary = after[-1] if summary else action.static_summary
    return True


def _keys_of(payloads: Sequence[Payload]) -> list[tuple[bytes | None, bytes | None]]:
    return [(each.metadata.get(KEY_ID), each.metadata.get(KEY_CHECK)) for each in payloads]
