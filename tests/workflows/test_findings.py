"""A work order with a likely key in its work waits for a person's decision."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.activities import Doubles, done, ended
from fakes.running import Handle, failure_of, result_of, until, work_order
from fakes.waiting import wait_until
from temporalio.client import Client

from clients.executions.task_rows import task_of_row
from clients.page.standing import need_of
from clients.temporal.decisions import OrderDecisions
from clients.temporal.work_orders import WorkOrders
from septet.contracts.decisions import MoveCall, Target
from septet.contracts.facts import KeyFinding
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import NOTIFIES, Task
from septet.errors import RefusedTransitionError
from workflows.work_order.workflow import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

ONE = KeyFinding(id="c0ffee" * 2, path="src/login.py", line=3, rule="github-pat")
TWO = KeyFinding(id="decade" * 2, path="src/pay.py", line=8, rule="stripe-access-token")
OWN = KeyFinding(path="src/login.py", line=3, rule="worker-key")
PATH = KeyFinding(kind="path", id="facade" * 2, path=".github/workflows/ci.yml", rule="changed")


def found(*findings: KeyFinding) -> Any:
    def refuse(call: StepCall) -> StepResult:
        return ended(call, Verdict.UNPROVEN, "What looks like a key stands in a file.", findings=findings)

    return refuse


async def test_it_waits_until_each_finding_is_let_pass(client: Client, doubles: Doubles) -> None:
    """After one retry of the agent, the work order names the findings and the command; a person approves each finding."""
    doubles.steps = {Step.CREATE_COMMIT: [found(ONE, TWO), found(ONE, TWO), done]}
    async with work_order(client, doubles, "histories/findings") as handle:
        decisions = OrderDecisions(WorkOrders(client, doubles.task_queue))
        task = await until(handle, waits_with_findings)
        assert (task.status, task.findings) == ("waiting", (ONE, TWO))
        assert f"septet approve {task.id} --finding {ONE.id} --finding {TWO.id}" in task.findings_question
        with pytest.raises(RefusedTransitionError, match="no finding is named"):
            await decisions.approve(task.id)
        with pytest.raises(RefusedTransitionError, match="0{12}"):
            await decisions.approve(task.id, findings=("0" * 12,))
        left = (await decisions.approve(task.id, who="ann", findings=(ONE.id,))).task
        assert (left.status, left.findings) == ("waiting", (TWO,))
        assert (await decisions.approve(task.id, who="ann", findings=(TWO.id,))).task.status == "running"
        assert ((await result_of(handle)).status, (await result_of(handle)).findings) == ("completed", ())
        last = doubles.calls_of(Step.CREATE_COMMIT)[-1]
        assert (last.attempt, last.allowed_findings) == (2, (ONE.id, TWO.id))
        assert "leave it: src/login.py line 3 (github-pat)" in last.reasons[0]
        assert doubles.calls_of(Step.CREATE_PULL_REQUEST)[0].allowed_findings == (ONE.id, TWO.id)


async def test_a_protected_path_waits_at_once(client: Client, doubles: Doubles) -> None:
    """The agent gets no retry for a protected path, which the issue may want; task, list and history name the path."""
    doubles.steps = {Step.CREATE_COMMIT: [found(PATH), found(PATH, TWO), found(PATH, TWO), done]}
    async with work_order(client, doubles) as handle:
        decisions = OrderDecisions(WorkOrders(client, doubles.task_queue))
        task = await until(handle, waits_with_findings)
        assert len(doubles.calls_of(Step.CREATE_COMMIT)) == 1
        assert ".github/workflows/ci.yml (changed)" in task.findings_question
        assert "key" not in task.findings_question
        row = await wait_until(lambda: row_of(handle), lambda row: row.status == "waiting")
        assert need_of(row) == "Waiting for you to decide on changes of .github/workflows/ci.yml"
        assert ".github/workflows/ci.yml" in (await handle.query(WorkOrder.history))[-1].why
        await decisions.approve(task.id, who="ann", findings=(PATH.id,))
        both = await until(handle, lambda task: TWO in task.findings)
        assert "key is in src/pay.py line 8 (stripe-access-token), and the work changes" in both.findings_question
        await decisions.approve(task.id, who="ann", findings=(PATH.id, TWO.id))
        assert (await result_of(handle)).status == "completed"


def waits_with_findings(task: Task) -> bool:
    return bool(task.findings)


async def test_people_are_notified_of_findings(client: Client, doubles: Doubles) -> None:
    """A host's notification names the places and the command that approves the findings; a cancel ends the question."""
    doubles.steps = {Step.CREATE_COMMIT: [found(ONE), found(ONE)]}
    doubles.open_workspace = lambda asked: doubles.workspace(asked).model_copy(update={"serves": (NOTIFIES,)})
    async with work_order(client, doubles, "histories/notified-of-findings") as handle:
        task = await until(handle, waits_with_findings)
        told = await wait_until(lambda: next((sent for sent in doubles.sent if sent.kind == "waiting"), None))
        assert (told.work_order_id, ONE.where in told.reason) == (task.id, True)
        assert f"septet approve {task.id} --finding {ONE.id}" in told.remedy
        await OrderDecisions(WorkOrders(client, doubles.task_queue)).move(task.id, MoveCall(to=Target.CANCELLED))
        await failure_of(handle)
        row = await wait_until(lambda: row_of(handle), lambda row: row.status == "cancelled")
        assert (row.findings, need_of(row)) == ((), "")


async def test_a_person_has_it_taken_out(client: Client, doubles: Doubles) -> None:
    """A rejection runs the step again with the feedback; a key of the worker itself cannot be approved."""
    doubles.steps = {Step.CREATE_COMMIT: [found(OWN), found(OWN), done]}
    async with work_order(client, doubles) as handle:
        decisions = OrderDecisions(WorkOrders(client, doubles.task_queue))
        task = await until(handle, waits_with_findings)
        assert "septet approve" not in task.findings_question
        await decisions.reject(task.id, "Read it from the environment.", who="ann")
        assert (await result_of(handle)).status == "completed"
        assert "Read it from the environment." in doubles.calls_of(Step.CREATE_COMMIT)[-1].reasons[0]


async def test_what_is_found_at_the_push_is_mended_in_a_new_commit(client: Client, doubles: Doubles) -> None:
    """A rejection at the push runs the commit again, because the push sends the commits."""
    doubles.steps = {Step.CREATE_PULL_REQUEST: [found(ONE), found(ONE), done]}
    async with work_order(client, doubles) as handle:
        decisions = OrderDecisions(WorkOrders(client, doubles.task_queue))
        task = await until(handle, waits_with_findings)
        await decisions.reject(task.id, "Squash it.", who="ann")
        assert (await result_of(handle)).status == "completed"
    assert doubles.names()[-4:] == [
        "create_pull_request", "create_pull_request", "create_commit", "create_pull_request",
    ]  # fmt: skip


async def row_of(handle: Handle) -> Task:
    return await task_of_row(await handle.describe())
