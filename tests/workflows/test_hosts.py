"""The workflow's side of lost hosts, with doubled activities; the real activities are in tests/acceptance."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from fakes.activities import Doubles, done, ended
from fakes.lost_hosts import QUEUE, given_up, on_a_dead_host, to_a_living_host
from fakes.running import replayed, result_of, start, until, until_step, worker_of
from fakes.waiting import wait_until
from temporalio import activity
from temporalio.api.common.v1 import Payloads
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    PollActivityTaskQueueRequest,
    RespondActivityTaskCompletedRequest,
)
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.worker import Worker

from septet.contracts.decisions import MoveCall, Target
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.workspace import MoveWorkspace, OpenWorkspace, Workspace
from septet.errors import NotFoundError
from workflows.wire.search_attributes import HOST
from workflows.work_order import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

STEPS = [step.value for step in Step]


async def start_on_a_dead_host(client: Client) -> WorkflowHandle[Any, Any]:
    """Start a work order and wait until its first step runs."""
    handle = await start(client, QUEUE)
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
    """Return the names of the activities that have not ended for the server."""
    described = await handle.describe()
    return {each.activity_type.name for each in described.raw_description.pending_activities}


async def test_a_step_goes_on_elsewhere_from_the_checkpoint_that_it_began_with(client: Client) -> None:
    """The workspace moves from its checkpoint; all steps run on the new host, and the step's row names the new host."""
    doubles = Doubles(QUEUE, open_workspace=on_a_dead_host, move_workspace=to_a_living_host)
    async with worker_of(client, doubles):
        handle = await start_on_a_dead_host(client)
        await handle.execute_update(WorkOrder.host_gone, "dead")
        task = await result_of(handle)
        await replayed(handle, "histories/moved")
    assert doubles.names() == ["open_workspace", "move_workspace", *STEPS]
    assert {call.workspace.host for step in Step for call in doubles.calls_of(step)} == {"host"}
    moved = next(asked for name, asked in doubles.calls if name == "move_workspace")
    assert (moved.workspace.host, moved.checkpoint) == ("dead", "fresh")
    first, *rest = task.steps
    assert first.recovered_by == "rerun"
    assert "run again on host host" in first.warnings[-1]
    assert {row.recovered_by for row in rest} == {None}


async def test_the_word_on_a_host_reaches_what_does_not_show_where_it_is(client: Client) -> None:
    """On a server that lists no workers, a work order has no search attribute with its host."""
    lost = f"lost-{uuid.uuid4().hex}"
    doubles = Doubles(
        QUEUE,
        open_workspace=lambda asked: on_a_dead_host(asked).model_copy(update={"host": lost}),
        move_workspace=to_a_living_host,
    )
    async with worker_of(client, doubles):
        handle = await start_on_a_dead_host(client)
        assert await wait_until(partial(given_up, client, lost)) == [handle.id]
        assert (await result_of(handle)).status == "completed"
    assert (await handle.describe()).typed_search_attributes.get(HOST) is None


async def test_a_word_on_another_host_is_refused_and_leaves_no_trace(client: Client) -> None:
    """Only the host with the workspace can be given up."""
    doubles = Doubles(QUEUE, open_workspace=on_a_dead_host)
    async with worker_of(client, doubles):
        handle = await start_on_a_dead_host(client)
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update(WorkOrder.host_gone, "another")
        events = [event.event_type async for event in handle.fetch_history_events()]
        await handle.terminate()
    assert not any("UPDATE" in repr(event) for event in events)


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
        handle = await start_on_a_dead_host(client)
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
        handle = await start_on_a_dead_host(client)
        await carry_out_one(client, "nobody", unparsed)
        await wait_until(lambda: pending(handle), lambda names: "finalize_json" in names)
        await handle.execute_update(WorkOrder.host_gone, "dead")
        task = await result_of(handle)
        await replayed(handle)
    assert task.status == "completed"
    assert moved[0].checkpoint == "not-read"


async def test_a_cancel_while_a_host_is_waited_for_ends_the_work_order(client: Client) -> None:
    """A work order ends on a cancel although its host is lost."""
    doubles = Doubles(QUEUE, open_workspace=lambda asked: on_a_dead_host(asked, kept=False))
    async with worker_of(client, doubles):
        handle = await start_on_a_dead_host(client)
        await handle.execute_update(WorkOrder.host_gone, "dead")
        await handle.cancel()
        await wait_until(handle.describe, lambda told: told.close_time)
        task = await handle.query(WorkOrder.work_order)
        await replayed(handle, "histories/waits-for-host")
    assert task.status == "cancelled"


@pytest.mark.parametrize("asks", ["retry", "move", "nudge"])
async def test_a_person_has_a_host_that_is_waited_for_asked_again_at_once(client: Client, asks: str) -> None:
    """A retry, a move to executing or a nudge probes the host at once, however rare its probes are by then."""

    @activity.defn(name="probe_host")
    async def probe_host() -> None:
        """Answer the probe."""

    def asked_hourly(asked: OpenWorkspace) -> Workspace:
        rarely = {"probe_seconds": 3600.0, "control_queue": f"{QUEUE}-{asks}"}
        return on_a_dead_host(asked, kept=False).model_copy(update=rarely)

    async with worker_of(client, Doubles(QUEUE, open_workspace=asked_hourly)):
        handle = await start_on_a_dead_host(client)
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
