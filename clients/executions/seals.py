"""Find the seal keys of open workflows and of schedules, and the workflows whose input is not sealed."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from temporalio.api.common.v1 import Payload
from temporalio.api.common.v1 import WorkflowExecution as ExecutionName
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import (
    Client,
    ScheduleActionStartWorkflow,
    ScheduleListActionStartWorkflow,
    WorkflowExecution,
)
from temporalio.service import RPCError, RPCStatusCode

from activities.host.payloads import read_json
from septet.contracts.seal import is_sealed, key_id_of
from septet.errors import SealedError

SCHEDULE: Final = "Schedule"
_AT_A_TIME: Final = 20
_SCHEDULED: Final = frozenset({"Janitor", "Intake"})


@dataclass(frozen=True, slots=True)
class SealUse:
    """The keys that sealed the data of one open workflow, or of one of Septet's schedules."""

    id: str
    kind: str
    """The type of the workflow, or `SCHEDULE`."""
    keys: frozenset[str]
    """The ids of the keys that sealed the workflow's input and its row in the index."""
    missing_keys: frozenset[str] = frozenset()
    """The ids in `keys` for which this process has no key."""
    began_unsealed: bool = False
    """Whether the input of the workflow, or of the workflow that the schedule starts, is not sealed."""


async def seals_in_use(client: Client) -> list[SealUse]:
    """Return the seal keys of each open workflow of a namespace, and of each schedule of intakes and janitors.

    Raises:
        RPCError: The server refused.
    """
    places = asyncio.Semaphore(_AT_A_TIME)

    async def look(row: WorkflowExecution) -> SealUse:
        async with places:
            inputs = await _inputs_of(client, row.id, row.run_id)
            memo = list(row.raw_info.memo.fields.values())
            return await _use_of(client, row.id, row.workflow_type, inputs, memo)

    rows = [row async for row in client.list_workflows('ExecutionStatus="Running"')]
    schedules = [use async for use in _schedules(client)]
    return [*await asyncio.gather(*map(look, rows)), *schedules]


async def began_unsealed(client: Client, workflow_id: str, run_id: str) -> bool:
    """Return whether a run was started with unsealed input; false for a run that the server has deleted.

    Raises:
        RPCError: The server refused.
    """
    return not all(is_sealed(each.metadata) for each in await _inputs_of(client, workflow_id, run_id))


async def _inputs_of(client: Client, workflow_id: str, run_id: str | None) -> list[Payload]:
    """Return the inputs of a run; empty for a deleted run."""
    request = GetWorkflowExecutionHistoryRequest(
        namespace=client.namespace,
        execution=ExecutionName(workflow_id=workflow_id, run_id=run_id or ""),
        maximum_page_size=1,
    )
    try:
        answer = await client.workflow_service.get_workflow_execution_history(request)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return []
        raise
    started = (event.workflow_execution_started_event_attributes for event in answer.history.events[:1])
    return [payload for each in started for payload in each.input.payloads]


async def _schedules(client: Client) -> AsyncIterator[SealUse]:
    async for entry in await client.list_schedules():
        listed = entry.schedule.action if entry.schedule is not None else None
        if not isinstance(listed, ScheduleListActionStartWorkflow) or listed.workflow not in _SCHEDULED:
            continue
        try:
            described = await client.get_schedule_handle(entry.id).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                continue
            raise
        action = described.schedule.action
        inputs = action.args if isinstance(action, ScheduleActionStartWorkflow) else ()
        yield await _use_of(client, entry.id, SCHEDULE, inputs, ())


async def _use_of(
    client: Client, name: str, kind: str, inputs: Sequence[Payload], others: Sequence[Payload]
) -> SealUse:
    keys, missing = set[str](), set[str]()
    for payload in (*inputs, *others):
        if (key := key_id_of(payload.metadata)) is None:
            continue
        keys.add(key)
        try:
            await read_json(client.data_converter, payload)
        except SealedError:
            missing.add(key)
    is_clear = not all(is_sealed(each.metadata) for each in inputs)
    return SealUse(name, kind, frozenset(keys), frozenset(missing), is_clear)


def seals(client: Client) -> bool:
    """Return whether a client seals payloads; the reason of a cancel or reset is never sealed."""
    return client.data_converter.payload_codec is not None
