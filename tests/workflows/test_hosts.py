"""The workflow's side of lost, silent and busy hosts, with doubled activities."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from fakes.activities import Doubles, done, ended
from fakes.lost_hosts import QUEUE, given_up, on_a_dead_host, to_a_living_host
from fakes.running import replayed, result_of, start, until, until_step, worker_of
from fakes.waiting import wait_until
from temporalio import activity
from temporalio.api.common.v1 import Payloads
from temporalio.api.enums.v1 import EventType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import PollActivityTaskQueueRequest, RespondActivityTaskCompletedRequest
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.worker import Worker

from clients.temporal.decisions import OrderDecisions
from clients.temporal.hosts import give_up
from clients.temporal.work_orders import WorkOrders
from septet.contracts.decisions import MoveCall, RetryCall, Target
from septet.contracts.names import Step, Verdict
from septet.contracts.order import Timeouts, WorkOrderInput
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import Task
from septet.contracts.workspace import (
    DELIVERS_CANCELS,
    END_WORK,
    LIVENESS,
    CancelledWork,
    HostSilence,
    MoveWorkspace,
    OpenWorkspace,
    Workspace,
)
from septet.errors import NotFoundError, ServerNotReachedError
from workflows.wire.policies import end_options
from workflows.wire.search_attributes import HOST
from workflows.work_order.workflow import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

STEPS = [step.value for step in Step]
OFTEN = {"heartbeat_seconds": 1}


@activity.defn(name="probe_host")
async def probe_host() -> None:
    """Answer the probe."""


async def running(client: Client, order_id: str = "", **fields: Any) -> WorkflowHandle[Any, Any]:
    """Start a work order and wait until its first step runs."""
    handle = await start(client, QUEUE, order_id, **fields)
    await until_step(handle)
    return handle


async def carry_out_one(client: Client, queue: str, step: Callable[[StepCall], StepResult]) -> None:
    """Take one step from a queue and complete it; no poller is left to which the server could give the next step."""
    name, service, converter = client.namespace, client.workflow_service, client.data_converter
    ask = PollActivityTaskQueueRequest(namespace=name, task_queue=TaskQueue(name=queue), identity="one step")
    task = await service.poll_activity_task_queue(ask, timeout=timedelta(seconds=60))
    [call] = await converter.decode(list(task.input.payloads), [StepCall])
    result = Payloads(payloads=await converter.encode([step(call)]))
    await service.respond_activity_task_completed(
        RespondActivityTaskCompletedRequest(namespace=name, task_token=task.task_token, result=result)
    )


async def pending(handle: WorkflowHandle[Any, Any]) -> set[str]:
    described = await handle.describe()
    return {each.activity_type.name for each in described.raw_description.pending_activities}


async def test_the_word_on_a_host_reaches_what_does_not_show_where_it_is(client: Client) -> None:
    """On a server that lists no workers, a work order has no search attribute with its host."""
    lost = f"lost-{uuid.uuid4().hex}"
    doubles = Doubles(
        QUEUE,
        open_workspace=lambda asked: on_a_dead_host(asked).model_copy(update={"host": lost}),
        move_workspace=to_a_living_host,
    )
    async with worker_of(client, doubles):
        handle = await running(client)
        assert await wait_until(partial(given_up, client, lost)) == [handle.id]
        assert (await result_of(handle)).status == "completed"
    assert (await handle.describe()).typed_search_attributes.get(HOST) is None


async def test_the_word_on_a_host_names_the_missing_worker(client: Client) -> None:
    """Without an answer the host may still have work orders: the error names the remedy, and not an empty host."""
    lost = f"lost-{uuid.uuid4().hex}"
    order_id = (await WorkOrders(client, lost).put(WorkOrderInput(repository="/app", title="Totals"))).id
    listed = partial(client.count_workflows, f'WorkflowId="{order_id}"')
    await wait_until(listed, lambda found: found.count == 1)
    with pytest.raises(ServerNotReachedError, match="No worker answered within 1 s") as refused:
        await give_up(client, lost, timedelta(seconds=1))
    assert "septet up" in refused.value.remedy
    await client.get_workflow_handle(order_id).terminate()


async def test_a_move_that_fails_leaves_the_work_order_waiting_with_the_reason(client: Client) -> None:
    """A missing checkpoint blocks the work order; the next try may find the checkpoint."""
    from activities.host.failures import failure

    tries = []

    def second_time(asked: MoveWorkspace) -> Workspace:
        tries.append(asked)
        if len(tries) == 1:
            raise failure(NotFoundError("Checkpoint fresh never came to the remote."))
        return to_a_living_host(asked)

    doubles = Doubles(QUEUE, open_workspace=on_a_dead_host, move_workspace=second_time)
    async with worker_of(client, doubles):
        handle = await running(client)
        await handle.execute_update(WorkOrder.host_gone, "dead")
        task = await until(handle, lambda task: task.stage == "blocked")
        assert task.status == "waiting"
        assert task.error is not None
        assert "Checkpoint fresh never came to the remote." in task.error.message
        await handle.execute_update(WorkOrder.host_gone, "dead")
        task = await result_of(handle)
        await replayed(handle)
    assert (task.status, task.error) == ("completed", None)


async def test_a_finalizer_goes_on_from_the_checkpoint_of_the_answer_that_was_not_read(client: Client) -> None:
    """The checkpoint has the step's work, so that the session's new host has the work too."""
    moved: list[MoveWorkspace] = []

    def unparsed(call: StepCall) -> StepResult:
        return ended(call, Verdict.UNPARSED, "no JSON was found", checkpoint="not-read")

    def dies_with(call: Any) -> Workspace:
        moved.append(call)
        return to_a_living_host(call)

    doubles = Doubles(QUEUE, open_workspace=on_a_dead_host, move_workspace=dies_with)
    doubles.finalizer = [lambda asked: done(asked.call)]
    async with worker_of(client, doubles):
        handle = await running(client)
        await carry_out_one(client, "nobody", unparsed)
        await wait_until(lambda: pending(handle), lambda names: "finalize_json" in names)
        await handle.execute_update(WorkOrder.host_gone, "dead")
        task = await result_of(handle)
        await replayed(handle)
    assert task.status == "completed"
    assert moved[0].checkpoint == "not-read"


@pytest.mark.parametrize("asks", ["retry", "move", "nudge"])
async def test_a_person_has_a_host_that_is_waited_for_asked_again_at_once(client: Client, asks: str) -> None:
    """A retry, a move to executing or a nudge probes the host at once, however rare its probes are by then."""

    def asked_hourly(asked: OpenWorkspace) -> Workspace:
        rarely = {"probe_seconds": 3600.0, "control_queue": f"{QUEUE}-{asks}"}
        return on_a_dead_host(asked, kept=False).model_copy(update=rarely)

    async with worker_of(client, Doubles(QUEUE, open_workspace=asked_hourly)):
        handle = await running(client)
        await handle.execute_update(WorkOrder.host_gone, "dead")
        await until(handle, lambda task: task.stage == "blocked")
        async with Worker(client, task_queue=f"{QUEUE}-{asks}", activities=[probe_host]):
            match asks:
                case "retry":
                    await handle.execute_update("retry")  # as a person's retry without further input
                case "move":
                    await handle.execute_update("move", MoveCall(to=Target.EXECUTING))
                case _:
                    await handle.signal(WorkOrder.nudge)
            await until(handle, lambda task: task.status == "running")
        await handle.terminate()
        await replayed(handle)


def watched(**where: Any) -> Doubles:
    """Return doubles with a workspace on a host without a worker, which other hosts watch."""
    where = {"serves": (END_WORK, LIVENESS), "orphan_limit_seconds": 0.0, **where}

    def opened(asked: OpenWorkspace) -> Workspace:
        return on_a_dead_host(asked).model_copy(update=where)

    return Doubles(QUEUE, open_workspace=opened, move_workspace=to_a_living_host)


async def tell_silence(handle: WorkflowHandle[Any, Any], host: str = "dead") -> None:
    await handle.signal("host_silent", HostSilence(host=host, since=datetime.now(UTC)))


async def events(handle: WorkflowHandle[Any, Any], way: str = "") -> Counter[str]:
    """Return the number of events of each kind in the history, after its replay."""
    await replayed(handle, way)
    return Counter(EventType.Name(event.event_type) for event in (await handle.fetch_history()).events)


async def scheduled(handle: WorkflowHandle[Any, Any]) -> list[str]:
    history = await handle.fetch_history()
    attributes = (each.activity_task_scheduled_event_attributes for each in history.events)
    return [each.activity_type.name for each in attributes if each.activity_type.name]


async def test_one_whose_host_is_silent_goes_on_elsewhere(client: Client) -> None:
    """The work order probes once more and waits for agents there; all steps run on the new host from the checkpoint."""
    doubles = watched()
    async with worker_of(client, doubles):
        handle = await running(client, timeouts=OFTEN)
        await tell_silence(handle)
        task = await result_of(handle)
        kinds = await events(handle, "histories/told-of-silence")
    assert doubles.names() == ["open_workspace", "move_workspace", *STEPS]
    assert {call.workspace.host for step in Step for call in doubles.calls_of(step)} == {"host"}
    moved = next(asked for name, asked in doubles.calls if name == "move_workspace")
    assert (moved.workspace.host, moved.checkpoint) == ("dead", "fresh")
    first, *rest = task.steps
    assert (task.status, first.recovered_by, {row.recovered_by for row in rest}) == ("completed", "rerun", {None})
    assert "run again on host host" in first.warnings[-1]
    assert kinds["EVENT_TYPE_TIMER_STARTED"] <= 1
    described = await handle.describe()
    assert described.typed_search_attributes.get(HOST) == "host"


async def test_a_word_on_another_host_moves_nothing(client: Client) -> None:
    """A work order ignores the silence of a host without its workspace, and refuses a report of its loss."""
    async with worker_of(client, watched()):
        handle = await running(client)
        await tell_silence(handle, "another")
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update(WorkOrder.host_gone, "another")
        assert await scheduled(handle) == ["open_workspace", "classify_issue"]
        await handle.terminate()


async def test_one_that_goes_back_to_before_the_loss_of_its_host_leaves_that_host_again(client: Client) -> None:
    """The retry needs no second report of the lost host: the previous run ended on another host."""
    doubles = watched()
    async with worker_of(client, doubles):
        handle = await running(client, timeouts=OFTEN)
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
        handle = await running(client, timeouts=OFTEN)
        await tell_silence(handle)
        await wait_until(lambda: scheduled(handle), lambda names: "probe_host" in names)
        await wait_until(lambda: pending(handle), lambda names: names == {"classify_issue"})
        assert (await handle.describe()).typed_search_attributes.get(HOST) == "dead"
        kinds = await events(handle)
        assert kinds["EVENT_TYPE_TIMER_STARTED"] == 0
        await handle.terminate()


async def test_a_host_that_is_given_up_again_has_been_silent_since_the_first_time(client: Client) -> None:
    """Each repeat adds its time, and keeps the time of the first; a cancel meanwhile ends the work order."""
    async with worker_of(client, watched(kept=False, probe_seconds=3600.0)):
        handle = await running(client, timeouts=OFTEN)
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
        assert (await handle.query(WorkOrder.work_order)).status == "cancelled"
        await replayed(handle, "histories/host-given-up-twice")


async def why(handle: WorkflowHandle[Any, Any]) -> str:
    task = await handle.query(WorkOrder.work_order)
    return task.error.message if task.error else ""


async def test_a_return_that_is_told_together_with_the_silence_is_heard(client: Client) -> None:
    """If both signals arrive in one workflow task, the work order still probes the host."""
    control = f"control-{uuid.uuid4().hex}"
    waiting = watched(kept=False, probe_seconds=3600.0, control_queue=control)
    async with worker_of(client, waiting):
        handle = await running(client, timeouts=OFTEN)
        await handle.execute_update(WorkOrder.host_gone, "dead")
        await until(handle, lambda task: task.stage == "blocked")
    await handle.signal("host_silent", HostSilence(host="dead", since=datetime.now(UTC)))
    await handle.signal("host_back", "dead")
    async with worker_of(client, waiting), Worker(client, task_queue=control, activities=[probe_host]):
        await until(handle, lambda task: task.status == "running")
        await handle.terminate()


async def test_a_cancel_does_not_wait_for_a_silent_host(client: Client) -> None:
    """The end is requested on the control queue, which needs no agent's slot; the silence closes the work order."""
    async with worker_of(client, watched(orphan_limit_seconds=3600.0, control_queue="nobody-at-all")):
        handle = await running(client, timeouts=OFTEN)
        await handle.cancel()
        await wait_until(lambda: scheduled(handle), lambda names: names[-1] == "end_work")
        await tell_silence(handle)
        await wait_until(handle.describe, lambda told: told.close_time)
        task = await handle.query(WorkOrder.work_order)
        await replayed(handle, "histories/cancelled-on-a-silent-host")
        sent = [each.activity_task_scheduled_event_attributes for each in (await handle.fetch_history()).events]
        assert [each.task_queue.name for each in sent if each.activity_type.name == "end_work"] == [
            "nobody-at-all"
        ]
    assert task.status == "cancelled"


async def test_a_cancel_is_delivered_where_the_server_does_not_push_it(client: Client) -> None:
    """The host's control queue gets the cancel while the step runs; the step ends its agent itself."""
    name = uuid.uuid4().hex[:8]
    delivered = asyncio.Event()
    queues = {"control_queue": f"control-{name}", "serves": (END_WORK, DELIVERS_CANCELS)}

    def behind_a_silent_server(asked: OpenWorkspace) -> Workspace:
        return Doubles(QUEUE).workspace(asked).model_copy(update=queues)

    async def until_delivered(call: StepCall) -> StepResult:
        await delivered.wait()
        return ended(call, Verdict.CANCELLED, "cancelled")

    @activity.defn(name="deliver_cancel")
    async def deliver_cancel(cancelled: CancelledWork) -> None:
        assert cancelled.work_order_id == f"wo-{name}"
        delivered.set()

    doubles = Doubles(QUEUE, {Step.CLASSIFY_ISSUE: [until_delivered]}, open_workspace=behind_a_silent_server)
    orders = worker_of(client, doubles)
    async with orders, Worker(client, task_queue=f"control-{name}", activities=[deliver_cancel]):
        handle = await start(client, QUEUE, f"wo-{name}")
        await wait_until(lambda: doubles.calls_of(Step.CLASSIFY_ISSUE))
        await handle.cancel()
        await wait_until(handle.describe, lambda described: described.close_time)
        task = await handle.query(WorkOrder.work_order)
        await replayed(handle, "histories/cancel-delivered")
    assert (task.status, task.steps[0].error_message) == ("cancelled", "cancelled")
    assert "end_work" not in doubles.names()


@pytest.mark.parametrize("limit_seconds", [1800.0, 7200.0])
async def test_an_end_waits_longer_than_an_agent_can_live_without_a_worker(limit_seconds: float) -> None:
    """An agent that nobody can reach has ended before the workflow gives up its end."""
    waits = end_options(Timeouts(), limit_seconds)["schedule_to_close_timeout"]
    assert waits is not None
    assert waits > timedelta(seconds=limit_seconds)
