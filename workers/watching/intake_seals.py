"""Seal intakes anew after a rotation of keys: a schedule keeps the input with which it was created."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Final

import structlog
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, ScheduleActionStartWorkflow, ScheduleUpdate, ScheduleUpdateInput
from temporalio.converter import PayloadCodec

from septet.contracts.intake import INTAKE_PREFIX
from septet.contracts.seal import KEY_CHECK, KEY_ID, refusal_of
from septet.errors import SealedError
from workers.beside import beside, repeat

_EVERY: Final = timedelta(hours=6)

_log = structlog.get_logger()


@asynccontextmanager
async def sealing_intakes(client: Client, task_queue: str) -> AsyncIterator[None]:
    """Seal the intakes of a queue anew after each rotation of the keys, during the block."""
    if client.data_converter.payload_codec is None:
        yield
        return
    look = partial(seal_intakes_anew, client, task_queue)
    async with beside(repeat(look, _EVERY.total_seconds, "intakes_not_sealed")):
        yield


async def seal_intakes_anew(client: Client, task_queue: str) -> None:
    """Seal the intakes of a queue with the current key.

    This skips intakes that the current key has sealed, that these keys cannot open, or that workers refuse.

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
    """Seal the input of a schedule with the current key, and return whether that changes the schedule.

    Raises:
        SealedError: These keys cannot open the input.
    """
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
