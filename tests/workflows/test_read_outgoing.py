"""A work order whose pushes need a reader: no push leaves unread, and no answer is paid for twice."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.activities import Doubles, done, ended
from fakes.running import result_of, until, work_order
from temporalio.client import Client, WorkflowFailureError

from clients.page.standing import need_of
from clients.temporal.decisions import OrderDecisions
from clients.temporal.work_orders import WorkOrders
from septet.contracts.facts import KeyFinding, Usage
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from workflows.work_order.workflow import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

DIGEST = "c0de" * 16
FOUND = KeyFinding(kind="outgoing", id="facade" * 2, path="src/login.py", line=3, rule="backdoor: it lets root in")


def used(dollars: float) -> dict[str, Any]:
    return {"usage": Usage(input_tokens=100, cost_usd=dollars)}


def push(call: StepCall) -> StepResult:
    """Push if the reader has read the diff and its findings are allowed, as a host does."""
    if call.reading is None or call.reading.digest != DIGEST:
        facts: dict[str, Any] = {"unread": DIGEST, "checkpoint": "committed", **used(0.5)}
        return ended(call, Verdict.UNPROVEN, "It waits for its reader.", **facts)
    if left := [each for each in call.reading.findings if each.id not in call.allowed_findings]:
        return ended(call, Verdict.UNPROVEN, "A person decides on that.", findings=tuple(left))
    return done(call)


def prose(call: StepCall) -> StepResult:
    return ended(call, Verdict.UNPARSED, "It is prose.")


def suspects(call: StepCall) -> StepResult:
    return done(call, "findings: 1", findings=(FOUND,), **used(0.25))


@pytest.fixture
def doubles(doubles: Doubles) -> Doubles:
    """Activities whose pushes wait for a reader."""
    doubles.steps[Step.CREATE_PULL_REQUEST] = [push]
    return doubles


async def test_it_is_read_and_then_pushed_with_the_answer_that_was_read(client: Client, doubles: Doubles) -> None:
    """The reader has its own session; the push continues with the first activity's answer, and all costs count."""
    doubles.readings = [lambda call: done(call, "findings: 0", **used(0.25))]
    async with work_order(client, doubles, model="large") as handle:
        task = await result_of(handle)
    assert (task.status, task.usage.cost_usd) == ("completed", 0.75)
    assert doubles.names()[-3:] == ["create_pull_request", "read_outgoing", "create_pull_request"]
    first, last = doubles.calls_of(Step.CREATE_PULL_REQUEST)
    reader = next(call for name, call in doubles.calls if name == "read_outgoing")
    assert (reader.reads, reader.session_id, reader.starts_from) == (DIGEST, None, "committed")
    assert (first.settles, last.settles, last.attempt) == ("", "create_pull_request-1", 1)
    (row,) = [row for row in task.steps if row.step == "create_pull_request"]
    assert (row.success, row.attempts, row.usage.cost_usd) == (True, 1, 0.75)


async def test_a_suspicion_waits_and_the_yes_pushes_it(client: Client, doubles: Doubles) -> None:
    """Task and list name the place and the suspicion; after the approval no agent runs again."""
    doubles.readings = [suspects]
    async with work_order(client, doubles, model="large") as handle:
        task = await until(handle, lambda task: task.findings)
        assert "src/login.py line 3 (backdoor: it lets root in)" in task.findings_question
        assert need_of(task) == "Waiting for you to decide on what a reader found before the push"
        await OrderDecisions(WorkOrders(client, doubles.task_queue)).approve(
            task.id, who="ann", findings=(FOUND.id,)
        )
        assert (await result_of(handle)).status == "completed"
    assert doubles.names()[-4:] == [
        "create_pull_request", "read_outgoing", "create_pull_request", "create_pull_request",
    ]  # fmt: skip
    last = doubles.calls_of(Step.CREATE_PULL_REQUEST)[-1]
    assert (last.settles, last.allowed_findings) == ("create_pull_request-1", (FOUND.id,))


async def test_a_no_goes_back_to_the_commit_and_is_read_again(client: Client, doubles: Doubles) -> None:
    """The committer gets the person's feedback, and a reader reads the new commit."""
    doubles.readings = [suspects, lambda call: done(call, "findings: 0")]
    async with work_order(client, doubles, model="large") as handle:
        task = await until(handle, lambda task: task.findings)
        await OrderDecisions(WorkOrders(client, doubles.task_queue)).reject(task.id, "Let nobody in.", who="ann")
        assert (await result_of(handle)).status == "completed"
    assert doubles.names()[-5:] == [
        "create_pull_request", "create_commit", "create_pull_request", "read_outgoing", "create_pull_request",
    ]  # fmt: skip
    assert "Let nobody in." in doubles.calls_of(Step.CREATE_COMMIT)[-1].reasons[0]
    assert [call.settles for call in doubles.calls_of(Step.CREATE_PULL_REQUEST)] == [
        "", "create_pull_request-1", "", "create_pull_request-3",
    ]  # fmt: skip


async def test_a_reader_without_an_answer_stops_the_push(client: Client, doubles: Doubles) -> None:
    """After two readings, each with its finalizers, the work order fails with the reason, and nothing is pushed."""
    doubles.readings = [prose]
    doubles.finalizer = [lambda asked: prose(asked.call)]
    async with work_order(client, doubles, model="large") as handle:
        with pytest.raises(WorkflowFailureError):
            await result_of(handle)
        task = await handle.query(WorkOrder.work_order)
    assert task.status == "failed"
    assert task.error is not None
    assert "its reader did not answer: It is prose." in task.error.message
    assert doubles.names()[-7:] == [
        "create_pull_request", *2 * ["read_outgoing", "finalize_json", "finalize_json"],
    ]  # fmt: skip


async def test_a_yes_goes_on_with_an_answer_of_the_finalizer(client: Client, doubles: Doubles) -> None:
    """The finalizer's activity runs once more, and the earlier use counts once."""
    doubles.finalizer = [lambda asked: push(asked.call)]
    doubles.readings = [suspects]
    async with work_order(client, doubles, model="large") as handle:
        doubles.steps[Step.CREATE_PULL_REQUEST] = [prose]
        task = await until(handle, lambda task: task.findings)
        before = task.usage
        decisions = OrderDecisions(WorkOrders(client, doubles.task_queue))
        await decisions.approve(task.id, who="ann", findings=(FOUND.id,))
        ended_task = await result_of(handle)
    assert (ended_task.status, ended_task.usage) == ("completed", before)
    assert doubles.names()[-3:] == ["read_outgoing", "finalize_json", "finalize_json"]
    last = doubles.calls[-1][1]
    assert (last.call.settles, last.call.allowed_findings) == ("finalize_json-1", (FOUND.id,))
    assert last.result.usage == Usage()


async def test_a_host_without_the_answer_takes_the_step_again(client: Client, doubles: Doubles) -> None:
    """If the reader runs on another host, the step runs again on that host and is read there."""
    doubles.readings = [
        lambda call: ended(call, Verdict.UNPROVEN, "on another host"),
        lambda call: done(call, "findings: 0"),
    ]
    async with work_order(client, doubles, model="large") as handle:
        assert (await result_of(handle)).status == "completed"
    assert doubles.names()[-5:] == [
        "create_pull_request", "read_outgoing", "create_pull_request", "read_outgoing", "create_pull_request",
    ]  # fmt: skip
