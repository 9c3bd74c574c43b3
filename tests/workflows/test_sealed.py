"""Workers with sealed payloads: the payloads that they open, the payloads that they refuse, and rotations of keys."""

import asyncio
import gc
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_asyncio
from fakes.activities import Doubles, done
from fakes.running import worker_of
from fakes.sealed import payloads_in, sealing, write_keys
from fakes.waiting import wait_until
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.client import (
    ActivityFailureError,
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.common import RawValue, SearchAttributeKey
from temporalio.converter import DataConverter, DefaultFailureConverterWithEncodedAttributes
from temporalio.exceptions import ApplicationError
from temporalio.worker import Replayer, Worker

from activities.host.cancellation import activity_handle
from clients.executions.seals import seals_in_use
from clients.temporal.budgets import BudgetClient
from clients.temporal.costs import CostClient
from clients.temporal.work_orders import WorkOrders
from septet.agents.runs.records import RunKey
from septet.budgets.account import LimitCall
from septet.contracts.costs import CostHistory, costs_id
from septet.contracts.names import Step
from septet.contracts.order import WorkOrderInput
from septet.costs.estimate import Question
from septet.errors import NotFoundError, SealedError, UnknownKeyError
from septet.keys.key_ring import keys_in_file, new_key_line
from workers.connection.payload_codec import SealingCodec
from workers.connection.plugin import SeptetPlugin
from workers.server.preflight import PreflightError, check_seal_keys
from workflows.budgets import Account, Costs
from workflows.pull_request.pull_request import PullRequestWorkflow
from workflows.work_order.workflow import WorkOrder

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    # The SDK leaves a coroutine behind if it cannot convert a workflow's input, and the collector finds the coroutine.
    pytest.mark.filterwarnings("ignore:coroutine '_WorkflowInstanceImpl:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

WITHIN_SECONDS = 100
ORDER = WorkOrderInput(repository="/app", title="Totals are wrong")
WORKFLOWS = [WorkOrder, PullRequestWorkflow]


@pytest.fixture
def client(sealed_client: Client) -> Client:
    """A client of the sealed namespace that reads and writes in clear."""
    return sealed_client


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return write_keys(tmp_path / "keys", "k1")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect a test's garbage at its end, and not in the middle of another test."""
    yield
    gc.collect()


@pytest_asyncio.fixture(loop_scope="session")
async def own(client: Client, doubles: Doubles, keys: Path) -> AsyncIterator[Client]:
    """A client with keys, whose workers refuse unsealed input."""
    made = sealing(client, keys, serves=True, required=True)
    async with worker_of(made, doubles):
        yield made


@dataclass(frozen=True)
class Reading(SealingCodec):
    """A codec that opens payloads and seals none: a stranger who can still read the answers."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return list(payloads)


def reading(client: Client, keys: Path) -> Client:
    """Return a client of the same server that seals nothing."""
    return Client(
        client.service_client,
        namespace=client.namespace,
        plugins=[SeptetPlugin(codec=Reading(keys_in_file(keys)))],
    )


async def ended(client: Client, order_id: str) -> ApplicationError:
    """Wait until a workflow fails, and return the cause."""
    with pytest.raises(WorkflowFailureError) as failed:
        await asyncio.wait_for(client.get_workflow_handle(order_id).result(), WITHIN_SECONDS)
    assert isinstance(failed.value.cause, ApplicationError)
    return failed.value.cause


def held(doubles: Doubles, step: Step) -> asyncio.Event:
    """Let a step wait until the returned event is set."""
    go = asyncio.Event()

    async def wait(call: Any) -> Any:
        await go.wait()
        return done(call)

    doubles.steps[step] = [wait]
    return go


async def test_keys_are_rotated_in_the_middle_of_a_work_order(
    client: Client, doubles: Doubles, keys: Path
) -> None:
    """The work order completes with both keys in its history; a client with only the new key gets the missing key's id."""
    go = held(doubles, Step.IMPLEMENT_PLAN)
    own = sealing(client, keys, serves=True)
    async with worker_of(own, doubles):
        orders = WorkOrders(own, doubles.task_queue)
        order_id = (await orders.run(ORDER, key=doubles.task_queue)).task.id
        await wait_until(lambda: doubles.calls_of(Step.IMPLEMENT_PLAN))
        draft = keys.with_suffix(".draft")
        draft.write_text(f"{new_key_line('k2')}\n{keys.read_text()}")
        draft.replace(keys)
        go.set()
        task = await asyncio.wait_for(orders.wait(order_id), WITHIN_SECONDS)
        assert (task.title, task.status) == ("Totals are wrong", "completed")
        assert (await orders.run(ORDER, key=doubles.task_queue)).task.id == order_id
        await own.get_workflow_handle(f"{order_id}/pr").terminate()
    history = await client.get_workflow_handle(order_id).fetch_history()
    used = {bytes(payload.metadata["encryption-key-id"]) for payload in payloads_in(history)}
    assert used == {b"k1", b"k2"}
    await Replayer(
        workflows=WORKFLOWS, plugins=[SeptetPlugin(codec=SealingCodec(keys_in_file(keys)))]
    ).replay_workflow(history)
    keys.write_text("".join(keys.read_text().splitlines(keepends=True)[:1]))
    with pytest.raises(UnknownKeyError, match="k1"):
        await WorkOrders(sealing(client, keys), doubles.task_queue).input_of(WorkOrderInput, order_id)


async def test_an_unsealed_start_fails_and_does_nothing(client: Client, doubles: Doubles, own: Client) -> None:
    """If workers refuse unsealed input, the workflow fails with the reason, and no activity runs."""
    order_id = (await WorkOrders(client, doubles.task_queue).put(ORDER)).id
    error = await ended(own, order_id)
    assert error.type == "UnsealedInput"
    assert "codec endpoint" in error.message
    watch = await client.start_workflow(
        "PullRequest", {"task": {}}, id=f"pr-{uuid.uuid4().hex}", task_queue=doubles.task_queue
    )
    assert (await ended(own, watch.id)).type == "UnsealedInput"
    assert doubles.calls == []


async def test_a_budget_that_is_not_sealed_is_refused_in_words_and_is_none(
    client: Client, doubles: Doubles, keys: Path
) -> None:
    """A client without keys gets an error that names the setting; a client with keys then opens the budget."""
    own = sealing(client, keys, serves=True, required=True)
    strangers, budgets = (BudgetClient(each, doubles.task_queue) for each in (client, own))
    limit = LimitCall(limit="5usd")
    async with Worker(own, task_queue=doubles.task_queue, workflows=[Account]):
        with pytest.raises(SealedError, match="Workers refuse a budget that is not sealed") as refused:
            await strangers.set("day", limit)
        assert "SEPTET_SEAL_KEYS_FILE" in refused.value.remedy
        for each in (strangers, budgets):
            with pytest.raises(NotFoundError):
                await each.show("day")
        assert (await budgets.set("day", limit)).budget.limit == "5usd/day"
        with pytest.raises(SealedError, match="no key is set here"):
            await strangers.set("day", limit)


async def test_unsealed_updates_and_signals_are_refused(
    client: Client, doubles: Doubles, keys: Path, own: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """An update is rejected, with and without input; a signal is ignored with a line in the log."""
    orders = WorkOrders(own, doubles.task_queue)
    order = ORDER.model_copy(update={"stage": "collected"})
    order_id = (await orders.put(order)).id
    stranger = reading(client, keys).get_workflow_handle(order_id)
    for args in (({"to": "triaged"},), ()):
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await stranger.execute_update("move" if args else "retry", args=args)
        assert getattr(refused.value.cause, "type", "") == "UnsealedInput"
    with caplog.at_level(logging.ERROR):
        await stranger.signal("host_back", "elsewhere")
        assert (await orders.get(order_id)).stage == "collected"
    assert any("dropping the signal" in record.getMessage() for record in caplog.records)
    await own.get_workflow_handle(order_id).execute_update("move", {"to": "cancelled"})


async def complete(client: Client, order_id: str, activity_id: str) -> None:
    result = {"step": "build_plan", "verdict": "done", "result_text": "specs/evil.md"}
    await client.get_async_activity_handle(workflow_id=order_id, run_id=None, activity_id=activity_id).complete(
        result
    )


async def complete_without_result(client: Client, order_id: str, activity_id: str) -> None:
    """Complete an activity without a payload that could be sealed."""
    await client.get_async_activity_handle(workflow_id=order_id, run_id=None, activity_id=activity_id).complete()


async def fail(client: Client, order_id: str, activity_id: str) -> None:
    """Fail an activity with a message in clear."""
    error = ApplicationError("Ask ann for her password.", type="OverBudget", non_retryable=True)
    await client.get_async_activity_handle(workflow_id=order_id, run_id=None, activity_id=activity_id).fail(error)


async def fail_as_if_encoded(client: Client, order_id: str, activity_id: str) -> None:
    """Fail an activity with a clear message in the place of a sealed message."""
    config = client.config()
    config["data_converter"] = DataConverter(failure_converter_class=DefaultFailureConverterWithEncodedAttributes)
    await fail(Client(**config), order_id, activity_id)


@pytest.mark.parametrize(
    "forge",
    [complete, complete_without_result, fail, fail_as_if_encoded],
    ids=lambda each: each.__name__,
)
async def test_an_unsealed_result_is_not_believed(
    client: Client, doubles: Doubles, own: Client, forge: Callable[[Client, str, str], Awaitable[None]]
) -> None:
    """A stranger without a key who ends a step ends the work order, and no worker uses the stranger's result."""
    never = held(doubles, Step.BUILD_PLAN)
    order_id = (await WorkOrders(own, doubles.task_queue).put(ORDER)).id
    await wait_until(lambda: doubles.calls_of(Step.BUILD_PLAN))
    await forge(client, order_id, "build_plan-1")
    assert (await ended(own, order_id)).type == "UnsealedInput"
    never.set()


@pytest.mark.parametrize("from_itself", [False, True], ids=["of another work order", "of another step"])
async def test_a_sealed_answer_counts_in_its_own_work_order_and_step_alone(
    client: Client, doubles: Doubles, own: Client, *, from_itself: bool
) -> None:
    """A stranger can send a sealed answer again: the answer opens, but no worker accepts it in another place."""
    never = held(doubles, Step.BUILD_PLAN)
    orders = WorkOrders(own, doubles.task_queue)
    waits = doubles.steps[Step.BUILD_PLAN]
    doubles.steps[Step.BUILD_PLAN] = [lambda call: done(call, "specs/of-another.md"), *waits]
    first = (await orders.put(ORDER)).id
    await asyncio.wait_for(orders.wait(first), WITHIN_SECONDS)
    second = (await orders.put(ORDER)).id
    await wait_until(lambda: len(doubles.calls_of(Step.BUILD_PLAN)) > 1)
    name = "classify_issue-1" if from_itself else "build_plan-1"
    answer = await answer_of(client, second if from_itself else first, name)
    assert len(await cast("SealingCodec", own.data_converter.payload_codec).decode([answer])) == 1  # it opens
    place = client.get_async_activity_handle(workflow_id=second, run_id=None, activity_id="build_plan-1")
    await place.complete(RawValue(answer))
    error = await ended(own, second)
    assert (error.type, "its seal is damaged" in error.message) == ("UnsealedInput", True)
    never.set()
    await own.get_workflow_handle(f"{first}/pr").terminate()


async def test_who_ends_an_activity_by_its_name_is_believed(client: Client, doubles: Doubles, own: Client) -> None:
    """Another process with the keys seals a failure for this activity, and the work order fails with its message."""
    never = held(doubles, Step.BUILD_PLAN)
    order_id = (await WorkOrders(own, doubles.task_queue).put(ORDER)).id
    await wait_until(lambda: doubles.calls_of(Step.BUILD_PLAN))
    run_id = (await client.get_workflow_handle(order_id).describe()).run_id
    key = RunKey(workflow_id=order_id, run_id=run_id or "", activity_id="build_plan-1")
    failure = ApplicationError("claude is not installed", type="AgentNotFound", non_retryable=True)
    await activity_handle(own, key).fail(failure)
    error = await ended(own, order_id)
    assert (error.type, "claude is not installed" in error.message) == ("AgentNotFound", True)
    never.set()


async def answer_of(client: Client, order_id: str, activity_id: str) -> Payload:
    """Return the payload of an activity's answer, as the server has it."""
    history = client.get_workflow_handle(order_id).fetch_history_events()
    events = {event.event_id: event async for event in history}
    for each in (event.activity_task_completed_event_attributes for event in events.values()):
        begun = events.get(each.scheduled_event_id)
        if begun is not None and begun.activity_task_scheduled_event_attributes.activity_id == activity_id:
            return each.result.payloads[0]
    raise AssertionError(activity_id)


async def test_what_returns_nothing_is_believed_where_nothing_is_sealed(
    client: Client, doubles: Doubles, own: Client
) -> None:
    """A worker's empty result and a step's sealed failure count; a stranger's empty result does not."""
    orders = WorkOrders(own, doubles.task_queue)
    order = ORDER.model_copy(update={"after": ("wo-first",)})

    async def fail_here(call: Any) -> Any:
        raise ApplicationError("claude is not installed", type="AgentNotFound", non_retryable=True)

    doubles.steps[Step.BUILD_PLAN] = [fail_here]
    forged_id = (await orders.put(order)).id
    forged = client.get_workflow_handle(forged_id)
    (look,) = await wait_until(lambda: pending(forged))
    await complete_without_result(client, forged_id, look)
    assert (await ended(own, forged_id)).type == "UnsealedInput"
    doubles.over.add("wo-first")
    order_id = (await orders.put(order)).id
    genuine = client.get_workflow_handle(order_id)
    asked_for_seat = EventType.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED
    await wait_until(lambda: event_types(genuine), lambda types: asked_for_seat in types)
    await genuine.signal("begin")
    error = await ended(own, order_id)
    assert (error.type, "claude is not installed" in error.message) == ("AgentNotFound", True)


async def event_types(handle: WorkflowHandle[Any, Any]) -> set[int]:
    """Return the types of a workflow's events so far."""
    return {event.event_type async for event in handle.fetch_history_events()}


async def pending(handle: WorkflowHandle[Any, Any]) -> list[str]:
    """Return the ids of a workflow's pending activities."""
    described = (await handle.describe()).raw_description
    return [each.activity_id for each in described.pending_activities]


async def test_an_activity_that_a_stranger_schedules_does_nothing(
    client: Client, doubles: Doubles, own: Client
) -> None:
    """Workers that refuse unsealed input do not carry out an activity that a stranger starts by itself."""
    with pytest.raises(ActivityFailureError):
        await client.execute_activity(
            "open_workspace",
            {"work_order_id": "wo-1", "repository": "/app"},
            id=f"stranger-{uuid.uuid4().hex}",
            task_queue=doubles.task_queue,
            schedule_to_close_timeout=timedelta(seconds=3),
        )
    assert doubles.calls == []


async def test_a_forged_seal_is_refused_and_holds_nothing_up(client: Client, doubles: Doubles, keys: Path) -> None:
    """Bytes that falsely claim a known key's seal fail a start instead of blocking it forever."""
    own = sealing(client, keys, serves=True)
    codec = own.data_converter.payload_codec
    assert codec is not None
    (payload,) = await codec.encode([Payload(metadata={"encoding": b"json/plain"}, data=b"{}")])
    payload.data = payload.data[:-1] + bytes([payload.data[-1] ^ 1])
    async with worker_of(own, doubles):
        order_id = f"wo-{uuid.uuid4().hex}"
        await client.start_workflow("WorkOrder", RawValue(payload), id=order_id, task_queue=doubles.task_queue)
        assert (await ended(own, order_id)).type == "UnsealedInput"


async def test_a_worker_whose_keys_open_nothing_of_its_queue_is_refused(
    client: Client, keys: Path, tmp_path: Path
) -> None:
    """Such a worker would fail each task; a worker that opens some of the queue's work may serve."""
    own, queue = sealing(client, keys), f"queue-{uuid.uuid4().hex}"
    others = write_keys(tmp_path / "others", "k2")
    stranger = sealing(client, others)
    order_id = (await WorkOrders(own, queue).put(ORDER)).id
    await wait_until(lambda: is_welcome(stranger, queue), lambda welcome: not welcome)
    for wrong in (stranger, client):
        with pytest.raises(PreflightError, match=rf"such as: k1 \({order_id}\)"):
            await check_seal_keys(wrong, queue)
    await check_seal_keys(own, queue)
    await check_seal_keys(stranger, f"{queue}-other")
    second = (await WorkOrders(stranger, queue).put(ORDER)).id
    await wait_until(lambda: is_welcome(stranger, queue))
    for each in (order_id, second):
        await client.get_workflow_handle(each).terminate()


async def is_welcome(client: Client, queue: str) -> bool:
    """Say whether a worker with a client's keys may serve a queue, by the server's present list."""
    try:
        await check_seal_keys(client, queue)
    except PreflightError:
        return False
    return True


async def test_what_began_unsealed_and_stands_still_is_counted_and_says_why(
    client: Client, doubles: Doubles, keys: Path
) -> None:
    """If workers start to refuse unsealed work, the work order names the remedy, and continues without the setting."""
    go = held(doubles, Step.BUILD_PLAN)
    order_id = (await WorkOrders(client, doubles.task_queue).put(ORDER)).id
    own = sealing(client, keys)
    orders = WorkOrders(own, doubles.task_queue)
    async with worker_of(sealing(client, keys, serves=True), doubles):
        await wait_until(lambda: doubles.calls_of(Step.BUILD_PLAN))
    sealed_id = (await orders.put(ORDER)).id
    async with worker_of(sealing(client, keys, serves=True, required=True), doubles):
        go.set()
        cause = (await wait_until(lambda: orders.get(order_id), lambda task: bool(task.stuck))).stuck
        assert cause is not None
        assert "without this setting" in cause
        assert "SEPTET_SEAL_REQUIRED" in cause
        unsealed = {use.id: use.kind for use in await seals_in_use(own) if use.began_unsealed}
        assert (unsealed[order_id], sealed_id in unsealed) == ("WorkOrder", False)
        assert (await asyncio.wait_for(orders.wait(sealed_id), WITHIN_SECONDS)).status == "completed"
    async with worker_of(sealing(client, keys, serves=True), doubles):
        assert (await asyncio.wait_for(orders.wait(order_id), WITHIN_SECONDS)).status == "completed"
        for each in (order_id, sealed_id):
            await own.get_workflow_handle(f"{each}/pr").terminate()


async def test_what_stands_still_for_a_key_names_no_other_remedy(
    client: Client, doubles: Doubles, keys: Path
) -> None:
    """A work order whose worker lacks its key stays open, names the key and the setting, and no other remedy."""
    theirs = sealing(client, write_keys(keys.with_name("theirs"), "k1"), serves=True)
    order_id = (await WorkOrders(sealing(client, keys), doubles.task_queue).put(ORDER)).id
    async with worker_of(theirs, doubles):
        tried = client.get_workflow_handle(order_id)
        await wait_until(tried.describe, lambda told: told.raw_description.pending_workflow_task.attempt > 1)
    orders = WorkOrders(theirs, doubles.task_queue)
    cause = (await orders.get(order_id)).stuck
    assert cause is not None
    assert cause.startswith("Its workflow task fails: This is sealed")
    assert cause.count("SEPTET_SEAL_KEYS_FILE") == 1
    assert ".." not in cause
    assert "promote" not in cause
    with pytest.raises(SealedError):
        await orders.input_of(WorkOrderInput, order_id)
    await tried.terminate()


async def test_what_cannot_be_read_here_keeps_nothing_from_its_start(
    client: Client, doubles: Doubles, keys: Path
) -> None:
    """A client without the workers' key starts a work order, and gets the key's id instead of an estimate."""
    own = sealing(client, keys, serves=True)
    orders, question = WorkOrders(client, doubles.task_queue), Question(project="o/r", agent="claude")
    async with Worker(own, task_queue=doubles.task_queue, workflows=[*WORKFLOWS, Costs]):
        history = await own.start_workflow(
            "Costs",
            CostHistory(project="o/r"),
            id=costs_id(doubles.task_queue, "o/r"),
            task_queue=doubles.task_queue,
        )
        estimate = await CostClient(client, doubles.task_queue).estimate(question)
        assert estimate.text.startswith("Estimate: unknown. This is sealed")
        assert not estimate.is_known
        task = await orders.start(ORDER)
        assert task.title == ORDER.title
        await client.get_workflow_handle(task.id).terminate()
        await history.terminate()


@workflow.defn(name="WorkOrder", sandboxed=False)
class DefectiveWorkOrder:
    """A work order that fails at each try of a worker, by its code or by an attribute that the namespace lacks."""

    @workflow.run
    async def run(self, _: RawValue) -> None:
        if "attribute" not in workflow.info().workflow_id:
            raise LookupError("the seventh step is missing.")
        workflow.upsert_search_attributes([SearchAttributeKey.for_bool("SeptetOfOld").value_set(value=True)])


@pytest.mark.parametrize(
    ("defect", "words", "remedy"),
    [
        ("code", "the seventh step is missing.", "Install a release that fixes this"),
        ("attribute", "SeptetOfOld", "Add them with `septet worker --register`."),
    ],
)
async def test_what_stands_still_says_why_where_failures_are_sealed(
    client: Client, doubles: Doubles, keys: Path, defect: str, words: str, remedy: str
) -> None:
    """A client with the keys opens the message of the failure, and names a remedy of its own for each cause."""
    own = sealing(client, keys, serves=True)
    orders = WorkOrders(own, doubles.task_queue)
    async with Worker(own, task_queue=doubles.task_queue, workflows=[DefectiveWorkOrder]):
        order_id = (await orders.put(ORDER, f"wo-{defect}-{uuid.uuid4().hex[:8]}")).id
        cause = (await wait_until(lambda: orders.get(order_id), lambda task: bool(task.stuck))).stuck or ""
        assert (words in cause, remedy in cause) == (True, True), cause
        await own.get_workflow_handle(order_id).terminate()
