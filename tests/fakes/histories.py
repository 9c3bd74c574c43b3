"""Work orders whose histories are recorded, each with the doubles that make it go its way."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Final

from fakes.activities import PLAN_SHA256, Doubles, done, ended
from fakes.told import ORDER, QUEUE, Handle, Told, on_a_dead_host, to_a_living_host
from fakes.waiting import wait_until
from fakes.watched_histories import ON_WATCHED_HOSTS
from temporalio import activity
from temporalio.client import Client, WorkflowFailureError, WorkflowHistory
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from activities.host.failures import failure
from clients.temporal.decisions import OrderDecisions
from clients.temporal.work_orders import WorkOrders
from septet.contracts.budget import BudgetWait
from septet.contracts.decisions import FindingsDecision, MoveCall, PlanDecision
from septet.contracts.facts import KeyFinding, Rescue
from septet.contracts.names import Stage, Step, Verdict
from septet.contracts.notification import NOTIFIES
from septet.contracts.rework import FollowTerms
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import Task
from septet.contracts.transitions import Target
from septet.contracts.workspace import OpenWorkspace, Workspace
from septet.errors import AgentMissingError
from workflows.intake.tracker_session import TrackerReport
from workflows.notifications.notification import NotificationWorkflow
from workflows.pull_request.pull_request import PullRequestWorkflow
from workflows.work_order import WorkOrder

_WITHIN_SECONDS: Final = 60.0
FOUND: Final = KeyFinding(id="c0ffee" * 2, path="src/login.py", line=3, rule="github-pat")
_RESCUE: Final = Rescue(
    snapshot="wo/0005-rescue", reason="no answer", step="implement_plan", patch="/rescue.patch"
)

_SPENT: Final = tuple(
    BudgetWait(
        scope="order/wo-notified-of-spent-budget", limit="3usd", message=f"It is used up: {used} of 3.00 USD."
    )
    for used in ("3.00", "3.10")
)
_OTHER_PLAN: Final = "specs/other.md"


def _unparsed(call: StepCall) -> StepResult:
    return ended(call, Verdict.UNPARSED, "no JSON was found")


def _refused(call: StepCall) -> StepResult:
    return ended(call, Verdict.REFUSED, "The plan contradicts itself.", rescues=(_RESCUE,))


def _found(call: StepCall) -> StepResult:
    return ended(call, Verdict.UNPROVEN, "What looks like a key stands in a file.", findings=(FOUND,))


def _over_budget(wait: BudgetWait, call: StepCall) -> StepResult:
    return ended(call, Verdict.OVER_BUDGET, wait.message, budget_wait=wait)


def _no_plan(call: StepCall) -> StepResult:
    return done(call, "0")


def _that_notifies(asked: OpenWorkspace) -> Workspace:
    return Doubles(QUEUE).workspace(asked).model_copy(update={"serves": (NOTIFIES,)})


def _no_agent(_call: StepCall) -> StepResult:
    raise failure(AgentMissingError("claude was not found.", remedy="Install it."))


async def _until_cancelled(call: StepCall) -> StepResult:
    try:
        while True:
            activity.heartbeat("works")
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        return ended(call, Verdict.CANCELLED, "cancelled", rescues=(_RESCUE,))


async def _until_its_worker_is_gone(call: StepCall) -> StepResult:
    await _until_cancelled(call)
    raise ApplicationError("The worker that ran it ended.", type="WorkerGone")


async def _cancel(_client: Client, handle: Handle) -> None:
    """Cancel it while its agent works."""
    await _until_implementing(handle)
    await handle.cancel()


async def _until_implementing(handle: Handle) -> None:
    await wait_until(lambda: handle.query(WorkOrder.running_step), lambda step: step == Step.IMPLEMENT_PLAN)


async def _give_up(_client: Client, handle: Handle) -> None:
    """Say that the host is dead, while its first step waits for it."""
    await wait_until(lambda: handle.query(WorkOrder.running_step), lambda step: step == Step.CLASSIFY_ISSUE)
    await handle.execute_update(WorkOrder.host_gone, "dead")


async def _give_up_and_cancel(client: Client, handle: Handle) -> None:
    """Say that the host is dead and keeps nothing elsewhere; then cancel what waits for it."""
    await _give_up(client, handle)
    await wait_until(lambda: handle.query(WorkOrder.work_order), lambda task: task.stage is Stage.BLOCKED)
    await handle.cancel()


async def _retry(client: Client, handle: Handle) -> None:
    """Wait until it has failed, and reset it to the step that failed."""
    await _end_of(handle)
    await OrderDecisions(WorkOrders(client, QUEUE)).retry(handle.id)


async def _until(handle: Handle, holds: Callable[[Task], bool]) -> Task:
    """Wait until it is as it should be, and return it."""
    return await wait_until(lambda: handle.query(WorkOrder.work_order), holds)


async def _move(handle: Handle, to: Target) -> None:
    await handle.execute_update("move", MoveCall(to=to, who="ann", why="so"))


async def _hold_up_and_cancel(_client: Client, handle: Handle) -> None:
    """Move it about on the board where it waits, and end it."""
    await _until(handle, lambda task: task.stage is Stage.COLLECTED)
    for target in (Target.BLOCKED, Target.COLLECTED, Target.CANCELLED):
        await _move(handle, target)


async def _give_it_its_turn(_client: Client, handle: Handle) -> None:
    """Be the board, which says after a while that it is its turn."""
    await _until(handle, lambda task: task.stage is Stage.TRIAGED)
    await handle.signal(WorkOrder.begin)


async def _start_before_its_turn(_client: Client, handle: Handle) -> None:
    """Let it wait for its turn, take that back, and have it begin at once in the end."""
    await _until(handle, lambda task: task.stage is Stage.COLLECTED)
    for target in (Target.TRIAGED, Target.COLLECTED, Target.TRIAGED, Target.EXECUTING):
        await _move(handle, target)


async def _reject_and_approve(_client: Client, handle: Handle) -> None:
    """Reject its first plan, and approve the second one."""
    decision = PlanDecision(plan_sha256=PLAN_SHA256, who="ann", feedback="Too long.")
    await _until(handle, lambda task: task.waits_for_a_decision)
    await handle.execute_update(WorkOrder.reject_plan, decision)
    await _until(handle, lambda task: task.plan_path == _OTHER_PLAN and task.waits_for_a_decision)
    await handle.execute_update(WorkOrder.approve_plan, decision)


async def _let_pass(_client: Client, handle: Handle) -> None:
    """Have what looks like a key taken out, and let pass what is found then."""
    for decision, update in (
        (FindingsDecision(who="ann", feedback="Take it out."), WorkOrder.reject_findings),
        (FindingsDecision(findings=(FOUND.id,), who="ann"), WorkOrder.approve_findings),
    ):
        await _until(handle, lambda task: bool(task.findings))
        await handle.execute_update(update, decision)


async def _raise_too_little(_client: Client, handle: Handle) -> None:
    """Have it ask again twice: once in vain, at the same limit."""
    for wait in _SPENT:
        await _until(handle, partial(_waits_for, wait))
        await handle.signal(WorkOrder.budget_open, wait.scope)


def _waits_for(wait: BudgetWait, task: Task) -> bool:
    return task.budget == wait


async def _block(_client: Client, handle: Handle) -> None:
    """Move it to blocked while its agent works."""
    await _until_implementing(handle)
    await _move(handle, Target.BLOCKED)


async def _give_up_what_failed(client: Client, handle: Handle) -> None:
    """Wait until it has failed, and move it to cancelled."""
    await _end_of(handle)
    await OrderDecisions(WorkOrders(client, QUEUE)).move(handle.id, MoveCall(to=Target.CANCELLED, who="ann"))


async def _rework(client: Client, handle: Handle) -> None:
    """Wait until it is in review, and have it implemented again."""
    await _end_of(handle)
    call = MoveCall(to=Target.EXECUTING, who="ann", feedback="Round the total.")
    await OrderDecisions(WorkOrders(client, QUEUE)).move(handle.id, call)


def _where_one_may_follow(asked: OpenWorkspace) -> Workspace:
    return Doubles(QUEUE).workspace(asked).model_copy(update={"follow": FollowTerms()})


_OF_TRACKER: Final = {
    "repository": "/app",
    "tracker": {"tracker": "linear", "id": "0b4a", "key": "ENG-12", "session": "5e55"},
}

TOLD: Final = {
    "completed": Told(),
    "text": Told(
        order={"repository": "/app", "title": "Totals are wrong", "description": "Ten items.", "priority": 5}
    ),
    "finalizer": Told({Step.IMPLEMENT_PLAN: [_unparsed]}, [lambda asked: done(asked.call)]),
    "finalizer-exhausted": Told(
        {Step.IMPLEMENT_PLAN: [_unparsed, done]},
        [
            lambda asked: ended(asked.call, Verdict.UNPARSED, "prose again"),
            lambda asked: ended(asked.call, Verdict.UNPARSED, "and again", rescues=(_RESCUE,)),
        ],
    ),
    "refused": Told({Step.IMPLEMENT_PLAN: [_refused]}),
    "agent-missing": Told({Step.CLASSIFY_ISSUE: [_no_agent]}),
    "cancelled": Told({Step.IMPLEMENT_PLAN: [_until_cancelled]}, event=_cancel),
    "cancelled-without-worker": Told({Step.IMPLEMENT_PLAN: [_until_its_worker_is_gone]}, event=_cancel),
    "invalid-input": Told(order={"repository": "/app", "issue": "42"}),
    "second-plan": Told({Step.FIND_PLAN_FILE: [_no_plan, done]}),
    "no-plan": Told({Step.FIND_PLAN_FILE: [_no_plan]}),
    "moved": Told(event=_give_up, open_workspace=on_a_dead_host, move_workspace=to_a_living_host),
    "waits-for-host": Told(
        event=_give_up_and_cancel, open_workspace=lambda asked: on_a_dead_host(asked, kept=False)
    ),
    "retried": Told({Step.IMPLEMENT_PLAN: [_refused, _refused, done]}, event=_retry),
    "collected": Told(order={**ORDER, "stage": "collected"}, event=_hold_up_and_cancel),
    "triaged": Told(order={**ORDER, "stage": "triaged"}, event=_give_it_its_turn),
    "before-its-turn": Told(order={**ORDER, "stage": "collected"}, event=_start_before_its_turn),
    "plan-approved": Told(
        {Step.FIND_PLAN_FILE: [done, lambda call: done(call, _OTHER_PLAN)]},
        order={**ORDER, "approve_plan": True},
        event=_reject_and_approve,
    ),
    "planned": Told(order={**ORDER, "plan_only": True}),
    "planned-and-continued": Told(order={**ORDER, "plan_only": True}, event=_retry),
    "findings": Told({Step.CREATE_COMMIT: [*[_found] * 4, done]}, event=_let_pass),
    "notified-of-findings": Told(
        {Step.CREATE_COMMIT: [*[_found] * 4, done]}, event=_let_pass, open_workspace=_that_notifies
    ),
    "notified-of-spent-budget": Told(
        {Step.BUILD_PLAN: [*(partial(_over_budget, wait) for wait in _SPENT), done]},
        event=_raise_too_little,
        open_workspace=_that_notifies,
    ),
    "waited-after-its-branch": Told(
        {Step.IMPLEMENT_PLAN: [*(partial(_over_budget, wait) for wait in _SPENT), done]}, event=_raise_too_little
    ),
    "blocked": Told({Step.IMPLEMENT_PLAN: [_until_cancelled]}, event=_block),
    "failed-again": Told({Step.IMPLEMENT_PLAN: [_refused]}, order=_OF_TRACKER, event=_retry),
    "given-up": Told({Step.IMPLEMENT_PLAN: [_refused]}, event=_give_up_what_failed),
    "followed-pull-request": Told(order={**ORDER, "follow_pr": True}, open_workspace=_where_one_may_follow),
    "reworked": Told(event=_rework),
    **ON_WATCHED_HOSTS,
}
"""By name: the work order's id is `wo-<name>`."""


async def history_of(client: Client, name: str) -> WorkflowHistory:
    """Let the work order of that name run to its end on a real server, and return the history of its last run."""
    told = TOLD[name]
    doubles = Doubles(
        QUEUE,
        told.steps,
        finalizer=told.finalizer,
        open_workspace=told.open_workspace,
        move_workspace=told.move_workspace,
    )
    worker = Worker(
        client,
        task_queue=QUEUE,
        workflows=[WorkOrder, PullRequestWorkflow, NotificationWorkflow, TrackerReport],
        activities=doubles.activities(),
        identity="recorder",
        max_heartbeat_throttle_interval=timedelta(seconds=0.1),
        default_heartbeat_throttle_interval=timedelta(seconds=0.1),
    )
    async with worker:
        handle = await client.start_workflow("WorkOrder", told.order, id=f"wo-{name}", task_queue=QUEUE)
        await told.event(client, handle)
        last = client.get_workflow_handle(handle.id)
        await _end_of(last)
        return await last.fetch_history()


async def _end_of(handle: Handle) -> None:
    async with asyncio.timeout(_WITHIN_SECONDS):
        try:
            await handle.result()
        except WorkflowFailureError:
            return
