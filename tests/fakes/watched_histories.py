"""Work orders whose hosts are watched by others, and are told of cancels: their histories are recorded too."""

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

from fakes.activities import Doubles, ended
from fakes.told import ORDER, QUEUE, Handle, Told, on_a_dead_host, to_a_living_host
from fakes.waiting import wait_until
from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from septet.contracts.names import Stage, Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.workspace import (
    DELIVERS_CANCELS,
    END_WORK,
    LIVENESS,
    CancelledWork,
    HostSilence,
    OpenWorkspace,
    Workspace,
)
from workflows.work_order import WorkOrder

_BACK: Final = "back"
_BACK_CONTROL: Final = "back-control"
_TOLD: Final = "told-control"
_WATCHED: Final = (END_WORK, LIVENESS)
_SOON: Final = {**ORDER, "timeouts": {"heartbeat_seconds": 1}}
"""A silent host is given up soon."""


@activity.defn(name="probe_host")
async def _probe_host() -> None:
    """Be there."""


def _watched(asked: OpenWorkspace, **where: Any) -> Workspace:
    """Return a workspace on a host that nobody serves, and that others watch."""
    where = {"serves": _WATCHED, "orphan_limit_seconds": 0.0, **where}
    return on_a_dead_host(asked).model_copy(update=where)


async def _classifying(handle: Handle) -> None:
    await wait_until(lambda: handle.query(WorkOrder.running_step), lambda step: step == Step.CLASSIFY_ISSUE)


async def _tell_silence(_client: Client, handle: Handle) -> None:
    """Be another host, which has not heard of this one."""
    await _classifying(handle)
    await handle.signal("host_silent", HostSilence(host="dead", since=datetime.now(UTC)))


async def _block_and_come_back(client: Client, handle: Handle) -> None:
    """Say that the host is dead, which keeps nothing elsewhere; then it is heard of again, and answers."""
    await _classifying(handle)
    await handle.execute_update(WorkOrder.host_gone, "dead")
    await wait_until(lambda: handle.query(WorkOrder.work_order), lambda task: task.stage is Stage.BLOCKED)
    async with Worker(client, task_queue=_BACK_CONTROL, activities=[_probe_host]):
        await handle.signal("host_silent", HostSilence(host="dead", since=datetime.now(UTC)))
        await handle.signal("host_back", "dead")
        await wait_until(lambda: handle.query(WorkOrder.work_order), lambda task: task.stage is not Stage.BLOCKED)
    async with Worker(client, task_queue=_BACK, activities=Doubles(QUEUE).activities()):
        await handle.result()


async def _cancel_on_a_silent_host(_client: Client, handle: Handle) -> None:
    """Cancel it; then its host is said to be silent, and nobody waits for that any more."""
    await _classifying(handle)
    await handle.cancel()
    await wait_until(lambda: _scheduled(handle), lambda names: names[-1] == "end_work")
    await handle.signal("host_silent", HostSilence(host="dead", since=datetime.now(UTC)))
    await wait_until(handle.describe, lambda told: told.close_time)


async def _give_up_twice(_client: Client, handle: Handle) -> None:
    """Say twice that the host is dead, which keeps nothing elsewhere; then cancel it."""
    await _classifying(handle)
    await handle.execute_update(WorkOrder.host_gone, "dead")
    first = await wait_until(lambda: handle.query(WorkOrder.work_order), lambda task: task.error)
    await handle.execute_update(WorkOrder.host_gone, "dead")
    await wait_until(lambda: handle.query(WorkOrder.work_order), lambda task: task.error != first.error)
    await handle.cancel()
    await handle.signal("host_silent", HostSilence(host="dead", since=datetime.now(UTC)))
    await wait_until(handle.describe, lambda told: told.close_time)


async def _scheduled(handle: Handle) -> list[str]:
    history = await handle.fetch_history()
    attributes = (each.activity_task_scheduled_event_attributes for each in history.events)
    return [each.activity_type.name for each in attributes if each.activity_type.name]


class _Delivery:
    """A cancel that the control queue of the host delivers to a step."""

    def __init__(self) -> None:
        self.delivered = asyncio.Event()

    async def step(self, call: StepCall) -> StepResult:
        """Work until it is told."""
        await self.delivered.wait()
        return ended(call, Verdict.CANCELLED, "cancelled")

    async def event(self, client: Client, handle: Handle) -> None:
        """Cancel it while its agent works."""

        @activity.defn(name="deliver_cancel")
        async def deliver_cancel(_work: CancelledWork) -> None:
            self.delivered.set()

        await wait_until(lambda: handle.query(WorkOrder.running_step), lambda step: step == Step.IMPLEMENT_PLAN)
        async with Worker(client, task_queue=_TOLD, activities=[deliver_cancel]):
            await handle.cancel()
            await wait_until(handle.describe, lambda told: told.close_time)


def _behind_a_silent_server(asked: OpenWorkspace) -> Workspace:
    serves = {"control_queue": _TOLD, "serves": (END_WORK, DELIVERS_CANCELS)}
    return Doubles(QUEUE).workspace(asked).model_copy(update=serves)


_DELIVERY: Final = _Delivery()
ON_WATCHED_HOSTS: Final = {
    "told-of-silence": Told(
        order=_SOON, event=_tell_silence, open_workspace=_watched, move_workspace=to_a_living_host
    ),
    "blocked-and-back": Told(
        order=_SOON,
        event=_block_and_come_back,
        open_workspace=lambda asked: _watched(
            asked, kept=False, probe_seconds=3600.0, control_queue=_BACK_CONTROL, task_queue=_BACK
        ),
    ),
    "host-given-up-twice": Told(
        event=_give_up_twice, open_workspace=lambda asked: _watched(asked, kept=False, probe_seconds=3600.0)
    ),
    "cancelled-on-a-silent-host": Told(
        event=_cancel_on_a_silent_host, open_workspace=lambda asked: _watched(asked, orphan_limit_seconds=3600.0)
    ),
    "cancel-delivered": Told(
        {Step.IMPLEMENT_PLAN: [_DELIVERY.step]},
        event=_DELIVERY.event,
        open_workspace=_behind_a_silent_server,
    ),
}
"""By name, as those of `fakes.histories`."""
