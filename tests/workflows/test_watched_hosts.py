"""A work order on a host that other hosts watch: it sends no probe and starts no timer until a signal arrives."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from fakes.activities import Doubles
from fakes.lost_hosts import QUEUE, on_a_dead_host, to_a_living_host
from fakes.running import replayed, result_of, start, until, until_step, worker_of
from fakes.waiting import wait_until
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from clients.temporal.decisions import OrderDecisions
from clients.temporal.work_orders import WorkOrders
from septet.contracts.decisions import RetryCall
from septet.contracts.names import Step
from septet.contracts.task import Task
from septet.contracts.workspace import END_WORK, LIVENESS, HostSilence, OpenWorkspace, Workspace
from workflows.wire.search_attributes import HOST
from workflows.work_order import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")


@activity.defn(name="probe_host")
async def probe_host() -> None:
    """Answer the probe."""


def watched(**where: Any) -> Doubles:
    """Return doubles with a workspace on a host without a worker, which other hosts watch."""
    where = {"serves": (END_WORK, LIVENESS), "orphan_limit_seconds": 0.0, **where}

    def opened(asked: OpenWorkspace) -> Workspace:
        return on_a_dead_host(asked).model_copy(update=where)

    return Doubles(QUEUE, open_workspace=opened, move_workspace=to_a_living_host)


async def running(client: Client) -> WorkflowHandle[Any, Any]:
    """Start a work order and wait until its first step runs."""
    handle = await start(client, QUEUE, timeouts={"heartbeat_seconds": 1})
    await until_step(handle)
    return handle


async def tell_silence(handle: WorkflowHandle[Any, Any], host: str = "dead") -> None:
    await handle.signal("host_silent", HostSilence(host=host, since=datetime.now(UTC)))


async def events(handle: WorkflowHandle[Any, Any], way: str = "") -> Counter[str]:
    """Return the number of events of each kind in the history, after its replay."""
    await replayed(handle, way)
    return Counter(EventType.Name(event.event_type) for event in (await handle.fetch_history()).events)


async def scheduled(handle: WorkflowHandle[Any, Any]) -> list[str]:
    """Return the names of the activities that the work order has scheduled."""
    history = await handle.fetch_history()
    attributes = (each.activity_task_scheduled_event_attributes for each in history.events)
    return [each.activity_type.name for each in attributes if each.activity_type.name]


async def test_a_step_waits_without_a_timer_and_can_be_found_by_its_host(client: Client) -> None:
    """While the step waits, its history gets no timer and no probe; its search attribute names the host."""
    async with worker_of(client, watched()):
        handle = await running(client)
        described = await handle.describe()
        history = await events(handle)
        assert history["EVENT_TYPE_TIMER_STARTED"] == 0
        assert await scheduled(handle) == ["open_workspace", "classify_issue"]
        assert described.typed_search_attributes.get(HOST) == "dead"
        await handle.terminate()


async def test_one_whose_host_is_silent_goes_on_elsewhere(client: Client) -> None:
    """The work order probes once more, waits for as long as agents may live there, and abandons the lost activity."""
    async with worker_of(client, watched()):
        handle = await running(client)
        await tell_silence(handle)
        task = await result_of(handle)
        kinds = await events(handle, "histories/told-of-silence")
    assert (task.status, task.steps[0].recovered_by) == ("completed", "rerun")
    assert kinds["EVENT_TYPE_TIMER_STARTED"] <= 1
    described = await handle.describe()
    assert described.typed_search_attributes.get(HOST) == "host"


async def test_one_that_goes_back_to_before_the_loss_of_its_host_leaves_that_host_again(client: Client) -> None:
    """The retry needs no second report of the lost host: the previous run ended on another host."""
    doubles = watched()
    async with worker_of(client, doubles):
        handle = await running(client)
        await tell_silence(handle)
        await result_of(handle)
        back = RetryCall(from_step=Step.CLASSIFY_ISSUE)
        await OrderDecisions(WorkOrders(client, QUEUE)).retry(handle.id, back)
        again = client.get_workflow_handle(handle.id, result_type=Task)
        task = await result_of(again)
        await replayed(again)
    assert (task.status, task.steps[0].recovered_by) == ("completed", "rerun")
    assert doubles.names().count("move_workspace") == 2


async def test_one_whose_host_answers_all_the_same_goes_on_there(client: Client) -> None:
    """The watching host may be wrong: a work order whose host answers waits for its step as before, without a timer."""
    control = f"control-{uuid.uuid4().hex}"
    async with (
        worker_of(client, watched(control_queue=control)),
        Worker(client, task_queue=control, activities=[probe_host]),
    ):
        handle = await running(client)
        await tell_silence(handle)
        await wait_until(lambda: scheduled(handle), lambda names: "probe_host" in names)
        await wait_until(lambda: pending(handle), lambda names: names == {"classify_issue"})
        kinds = await events(handle)
        assert kinds["EVENT_TYPE_TIMER_STARTED"] == 0
        await handle.terminate()


async def test_one_that_waits_for_its_host_hears_when_it_is_back(client: Client) -> None:
    """Without checkpoints elsewhere the work order is blocked until its host is back and answers."""
    control = f"control-{uuid.uuid4().hex}"
    waiting = watched(kept=False, probe_seconds=3600.0, control_queue=control, task_queue=f"{control}-agents")
    async with worker_of(client, waiting):
        handle = await running(client)
        await handle.execute_update(WorkOrder.host_gone, "dead")
        await until(handle, lambda task: task.stage == "blocked")
        async with Worker(client, task_queue=control, activities=[probe_host]):
            await handle.signal("host_silent", HostSilence(host="dead", since=datetime.now(UTC)))
            await handle.signal("host_back", "dead")
            await until(handle, lambda task: task.status == "running")
        async with Worker(client, task_queue=f"{control}-agents", activities=waiting.activities()):
            assert (await result_of(handle)).status == "completed"
        await replayed(handle, "histories/blocked-and-back")


async def test_a_host_that_is_given_up_again_has_been_silent_since_the_first_time(client: Client) -> None:
    """Each repeat adds its time, and keeps the time of the first."""
    async with worker_of(client, watched(kept=False, probe_seconds=3600.0)):
        handle = await running(client)
        await handle.execute_update(WorkOrder.host_gone, "dead")
        first = await wait_until(lambda: why(handle))
        assert "has not answered since 20" in first
        since = first.partition(";")[0]
        told = {first}
        for _ in range(2):
            await handle.execute_update(WorkOrder.host_gone, "dead")
            again = await wait_until(lambda: why(handle), lambda message: message not in told)
            assert again.startswith(f"{since} (still silent at 20")
            told.add(again)
        await handle.cancel()
        await tell_silence(handle)
        await wait_until(handle.describe, lambda told: told.close_time)
        await replayed(handle, "histories/host-given-up-twice")


async def why(handle: WorkflowHandle[Any, Any]) -> str:
    """Return the reason of a work order's wait."""
    task = await handle.query(WorkOrder.work_order)
    return task.error.message if task.error else ""


async def test_a_return_that_is_told_together_with_the_silence_is_heard(client: Client) -> None:
    """If both signals arrive in one workflow task, the work order still probes the host."""
    control = f"control-{uuid.uuid4().hex}"
    waiting = watched(kept=False, probe_seconds=3600.0, control_queue=control)
    async with worker_of(client, waiting):
        handle = await running(client)
        await handle.execute_update(WorkOrder.host_gone, "dead")
        await until(handle, lambda task: task.stage == "blocked")
    await handle.signal("host_silent", HostSilence(host="dead", since=datetime.now(UTC)))
    await handle.signal("host_back", "dead")
    async with worker_of(client, waiting), Worker(client, task_queue=control, activities=[probe_host]):
        await until(handle, lambda task: task.status == "running")
        await handle.terminate()


async def test_a_cancel_does_not_wait_for_a_silent_host(client: Client) -> None:
    """The lost host's next worker ends its leftovers; the work order closes once both cancel and silence are known."""
    async with worker_of(client, watched(orphan_limit_seconds=3600.0, control_queue="nobody-at-all")):
        handle = await running(client)
        await handle.cancel()
        await wait_until(lambda: scheduled(handle), lambda names: names[-1] == "end_work")
        await tell_silence(handle)
        await wait_until(handle.describe, lambda told: told.close_time)
        task = await handle.query(WorkOrder.work_order)
        await replayed(handle, "histories/cancelled-on-a-silent-host")
    assert task.status == "cancelled"


async def pending(handle: WorkflowHandle[Any, Any]) -> set[str]:
    """Return the names of the activities that have not ended for the server."""
    described = await handle.describe()
    return {each.activity_type.name for each in described.raw_description.pending_activities}
