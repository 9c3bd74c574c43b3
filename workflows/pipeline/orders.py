"""Run a pipeline's work orders: start one for each issue, wait for its end, and cancel it for a skipped issue."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import ClassVar, Final

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import (
    ApplicationError,
    ChildWorkflowError,
    FailureError,
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)
from temporalio.workflow import ChildWorkflowCancellationType, ParentClosePolicy

from septet.contracts.names import Stage, Step
from septet.contracts.order import StepSettings, WorkOrderInput
from septet.contracts.task import Task, TaskError
from septet.contracts.task_rows import MEMO, first_task, row_of
from septet.pipelines.inputs import PipelineIssue
from septet.pipelines.schedule import CLOSED, find_doomed
from septet.pipelines.views import IssueState, IssueStatus, PipelineRun
from septet.system.text import timestamp
from workflows.pipeline.handlers import PipelineHandlers
from workflows.pipeline.state import skip_error
from workflows.wire.failures import GO_ON
from workflows.wire.search_attributes import start_attributes

_OTHER_ID: Final = "Put the issue into a pipeline with another id: its work order is named `<pipeline>-<issue>`."
_ENOUGH_EVENTS: Final = 3_000
"""After this many events a run starts no more work orders, because the open ones need the rest of the history."""
_ENOUGH_BYTES: Final = 3_000_000
_MOST_EVENTS: Final = 20_000
"""The limit in place of `_ENOUGH_EVENTS` after `go_on`; Temporal ends a workflow at 51,200 events."""
_MOST_BYTES: Final = 20_000_000


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """The limits of one workflow run: open work orders, started issues, and the wait for slow issues."""

    open_orders: int = 40
    """The most work orders that wait for a lane or have one; work orders that wait for people do not count."""
    issues_of_a_run: int = 80
    """The most issues that one run starts; with some fifty events each, they fill less than a tenth of a history.
    """
    patience: timedelta = timedelta(minutes=10)
    """How long lanes may be idle because the next run must wait for a slow issue."""


class Window:
    """Decides how many work orders one workflow run of a pipeline may start."""

    def __init__(self, limits: WindowLimits, on_news: Callable[[], None]) -> None:
        """Create the window of a new run; it calls `on_news` when the run stops waiting for slow issues."""
        self._limits = limits
        self._on_news = on_news
        self._patience: asyncio.Task[None] | None = None
        self._goes_on = False
        """Whether this run starts more issues than its limit, because open issues may never end."""

    def room(self, open_orders: int, started_count: int) -> int:
        """Return how many work orders may start now.

        Args:
            open_orders: The number of work orders that wait for a lane or have a lane.
        """
        room = self._limits.open_orders - open_orders
        if self._goes_on:
            return max(room, 0) if _is_shorter(_MOST_EVENTS, _MOST_BYTES) else 0
        room = min(room, self._limits.issues_of_a_run - started_count)
        return max(room, 0) if _is_shorter(_ENOUGH_EVENTS, _ENOUGH_BYTES) else 0

    def go_on(self) -> None:
        """Let this run start more issues than its limit, because open issues may never end."""
        self._goes_on = True

    def begin_patience(self) -> None:
        """Call `go_on` after `limits.patience` if lanes stay idle until then."""
        if self._patience is None and not self._goes_on:
            self._patience = asyncio.create_task(self._lose_patience())

    def end_patience(self) -> None:
        """Cancel the call of `go_on` that `begin_patience` has planned."""
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    async def _lose_patience(self) -> None:
        await workflow.sleep(self._limits.patience, summary="does the next run have to wait?")
        self.go_on()
        self._on_news()


def _is_shorter(events: int, size: int) -> bool:
    info = workflow.info()
    return info.get_current_history_length() < events and info.get_current_history_size() < size


class PipelineBase(PipelineHandlers):
    """Chooses the issues of a pipeline to work on, and starts and ends their work orders."""

    window_limits: ClassVar[WindowLimits] = WindowLimits()

    def __init__(self) -> None:
        super().__init__()
        self._window = Window(self.window_limits, self._note_news)
        self._texts: dict[str, PipelineIssue] = {}

    @property
    def _is_under_way(self) -> bool:
        return not all(work.done() for work in self._order_tasks.values())

    def _next_issues(self) -> list[IssueState]:
        state = self._state
        following = [issue for issue in state.open_issues if issue.issue_id not in self._order_tasks]
        if not following or state.is_stopping or (state.is_paused and self._order_tasks):
            self._window.end_patience()
            return []
        left = [state.issues[name] for name, work in self._order_tasks.items() if not work.done()]
        in_turn = [issue for issue in left if not self._is_held_back(issue)]
        if left and not in_turn and not self._holders:
            self._window.go_on()
        room = self._window.room(len(in_turn), len(self._order_tasks))
        if room or not left or state.planner.id in self._holders or len(self._holders) == len(state.lanes):
            self._window.end_patience()
        else:
            self._window.begin_patience()
        return [issue for issue in following[:room] if issue.issue_id not in state.to_skip]

    def _is_held_back(self, issue: IssueState) -> bool:
        """Return whether an issue waits for a person to move it on the board, or to move a dependency of it."""
        away = issue.status is IssueStatus.WAITING and issue.order_id in self._absent_orders
        return away or (issue.status is IssueStatus.PLANNED and issue.issue_id not in self._state.to_skip)

    def _start_orders(self) -> bool:
        """Start the work orders that the limits allow; return whether any was started."""
        issues = self._next_issues()
        for issue in issues:
            task = self._order_tasks[issue.issue_id] = asyncio.create_task(self._carry_out_issue(issue))
            task.add_done_callback(partial(self._check_result, issue.issue_id))
        return bool(issues)

    async def _carry_out_issue(self, issue: IssueState) -> None:
        """Run the work order of an issue, and record how it ended."""
        text = self._texts.get(issue.issue_id) or PipelineIssue(id=issue.issue_id)
        order = _make_order(self._state.id, self._state.request, text)
        row = row_of(first_task(issue.order_id, order, Stage.TRIAGED, timestamp(workflow.now())))
        task, status, error = None, IssueStatus.COMPLETED, None
        try:
            task = await workflow.execute_child_workflow(
                "WorkOrder",
                order,
                id=issue.order_id,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                parent_close_policy=ParentClosePolicy.REQUEST_CANCEL,
                cancellation_type=ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
                memo={MEMO: row},
                search_attributes=start_attributes(row),
                static_summary=f"{order.repository} {order.title or f'#{order.issue}'}"[:200],
                result_type=Task,
            )
        except (FailureError, asyncio.CancelledError) as failed:
            status, task, error = _explain_ending(failed, issue.order_id)
        self._end_issue(issue.issue_id, status, task, error)

    def _check_result(self, issue_id: str, work: asyncio.Task[None]) -> None:
        """End an issue whose asyncio task recorded no result, because the task was cancelled or failed."""
        if self._state.issues[issue_id].status not in CLOSED:
            fault = None if work.cancelled() else work.exception()
            status = IssueStatus.CANCELLED if fault is None else IssueStatus.FAILED
            error = TaskError(type=type(fault).__name__, message=str(fault)[:500]) if fault is not None else None
            self._end_issue(issue_id, status, None, error)

    def _end_issue(self, issue_id: str, status: IssueStatus, task: Task | None, error: TaskError | None) -> None:
        state = self._state
        if reason := state.to_skip.get(issue_id):
            status, error = IssueStatus.SKIPPED, skip_error(reason)
        state.end_issue(state.issues[issue_id], status, workflow.now(), task, error)
        self._notes.note(issue_id)
        self.leaves(state.issues[issue_id].order_id)

    def _skip_issues(self) -> None:
        """Skip the issues that people want to skip or that cannot be worked on."""
        state = self._state
        while lost := find_doomed(state.issues, state.to_skip):
            for issue, before in lost:
                status = "skipped" if before in state.to_skip else state.issues[before].status.value
                state.to_skip.setdefault(issue.issue_id, f"it depends on issue {before}, which is {status}")
        for issue in state.open_issues:
            if issue.status not in {IssueStatus.WAITING, IssueStatus.PLANNED}:
                continue
            if state.is_stopping:
                state.to_skip.setdefault(issue.issue_id, "the pipeline was stopped")
            if issue.issue_id not in state.to_skip:
                continue
            if task := self._order_tasks.get(issue.issue_id):
                task.cancel()
            else:
                self._end_issue(issue.issue_id, IssueStatus.SKIPPED, None, None)


def _make_order(pipeline_id: str, request: PipelineRun, issue: PipelineIssue) -> WorkOrderInput:
    return WorkOrderInput(
        repository=request.repository,
        issue=issue.number,
        title=issue.title if issue.number is None else None,
        description=issue.body if issue.number is None else None,
        agent=request.planner or request.agent,
        fallback_agent=request.fallback_agent,
        model=request.model,
        base=request.base,
        push_to=request.push_to,
        project=request.project,
        stage="triaged",
        draft=request.draft,
        labels=request.labels,
        steps={
            Step.BUILD_PLAN: StepSettings(wall_seconds=request.plan_seconds),
            Step.IMPLEMENT_PLAN: StepSettings(wall_seconds=request.execution_seconds),
        },
        pipeline=pipeline_id,
        pipeline_budget=request.budget,
    )


def _explain_ending(fault: BaseException, order_id: str) -> tuple[IssueStatus, Task | None, TaskError | None]:
    """Return the status, the task and the error of an issue whose work order did not complete."""
    cause = fault.cause if isinstance(fault, ChildWorkflowError) else fault
    if is_cancelled_exception(fault) or (cause is not None and is_cancelled_exception(cause)):
        return IssueStatus.CANCELLED, None, TaskError(type="Cancelled", message="The work order was cancelled.")
    if isinstance(cause, ApplicationError) and cause.details:
        task = Task.model_validate(cause.details[0], strict=False)
        return IssueStatus.FAILED, task, task.error
    if isinstance(fault, WorkflowAlreadyStartedError):
        message = f"The id is taken: work order {fault.workflow_id} existed before this pipeline."
        return IssueStatus.FAILED, None, TaskError(type="AlreadyRunning", message=message, remedy=_OTHER_ID)
    message = f"The work order ended: {cause or fault}"
    error = TaskError(type=type(cause or fault).__name__, message=message, remedy=GO_ON)
    return IssueStatus.FAILED, None, error.of(order_id)
