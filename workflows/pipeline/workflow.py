"""The pipeline: many issues, one agent that plans them and one or more that carry the plans out."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import ClassVar, Final

from temporalio import workflow
from temporalio.common import RawValue, RetryPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    FailureError,
    is_cancelled_exception,
)
from temporalio.workflow import ChildWorkflowCancellationType, ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from septet.contracts.lanes import Lane, LaneGrant, Role
    from septet.contracts.names import Stage
    from septet.contracts.pipeline import PIPELINE_ID, PipelineIssue, ReadIssues
    from septet.contracts.pipeline_view import IssueState, IssueStatus, PipelineRun, PipelineStatus, PipelineView
    from septet.contracts.row import MEMO, first_task, row_of
    from septet.contracts.task import Task, TaskError
    from septet.errors import InvalidInputError
    from septet.pipelines.issues import ordered
    from septet.pipelines.schedule import CLOSED, doomed, next_to_execute, next_to_plan
    from septet.system.timestamps import timestamp
    from workflows._failures import explained
    from workflows.activity_stubs import READ_ISSUES
    from workflows.pipeline._endings import how_it_ended
    from workflows.pipeline._handlers import PipelineHandlers
    from workflows.pipeline._notes import Notes
    from workflows.pipeline.state import PipelineState, skipped
    from workflows.run_input import checked_input, takes_raw_input
    from workflows.search_attributes import found_at_start

_MOST_EVENTS: Final = 3_000
"""With a shorter history, and one of fewer bytes, there is room for a second batch in the same run."""
_MOST_BYTES: Final = 2_500_000
_MOST_BEFORE: Final = 100
_TITLE: Final = 200
_READING: Final = timedelta(minutes=10)
_RETRIES: Final = RetryPolicy(maximum_interval=timedelta(minutes=1))


@workflow.defn(name="Pipeline")
class Pipeline(PipelineHandlers):
    """Issues in their order, each a work order: planned ahead by one agent, carried out by others."""

    issues_of_a_run: ClassVar[int] = 40
    """Before it goes on in another one: some fifty events each stay far below a tenth of what a history may be."""

    @workflow.run
    @takes_raw_input
    async def run(self, order: RawValue | None = None, *rest: object) -> PipelineView:
        """Read the issues; have each planned and carried out; close both agents; report."""
        self._story = story = self._accept(order, rest)
        self._notes = Notes(story)
        try:
            await self._read_issues()
            await self._carry_out()
            if story.open_issues:
                await self._hand_over()
        except (ActivityError, asyncio.CancelledError) as error:
            if is_cancelled_exception(error):
                await self._close(PipelineStatus.CANCELLED)
                raise asyncio.CancelledError from error
            why, _ = explained(error)
            await self._close(PipelineStatus.FAILED, why)
            raise ApplicationError(why.message, story.view(), type=why.type, non_retryable=True) from error
        await self._close(PipelineStatus.STOPPED if story.stopping else PipelineStatus.COMPLETED)
        return story.view()

    def _accept(self, order: RawValue | None, rest: tuple[object, ...]) -> PipelineState:
        info = workflow.info()
        continued = info.continued_run_id is not None
        asked = checked_input(info.workflow_id, (order, *rest), PipelineRun, PIPELINE_ID, by_workflow=continued)
        if not continued and asked.carried is not None:
            asked = asked.model_copy(update={"carried": None})
        self._texts = {issue.id: issue for issue in asked.listed}
        return PipelineState(info.workflow_id, asked, info.first_execution_run_id, info.workflow_start_time)

    async def _read_issues(self) -> None:
        """Read titles and dependencies of what is on the forge, and order all; a circle is refused."""
        story, asked = self._known(), self._known().asked
        if story.issues:
            return
        numbers = tuple(issue.number for issue in asked.listed if issue.number is not None)
        read: tuple[PipelineIssue, ...] = ()
        if numbers or asked.label:
            read = (
                await READ_ISSUES.start(
                    ReadIssues(repository=asked.repository, ids=tuple(map(str, numbers)), label=asked.label),
                    start_to_close_timeout=_READING,
                    retry_policy=_RETRIES,
                    summary=f"the issues of {asked.repository}"[:200],
                )
            ).issues
        found = {issue.id: issue for issue in read}
        issues = [_merged(issue, found) for issue in asked.listed] or list(read)
        try:
            issues = list(ordered(issues))
        except InvalidInputError as error:
            message = f"The input is not valid: {error.message} {error.remedy}".strip()
            raise ApplicationError(message, type="InvalidInput", non_retryable=True) from error
        self._texts = {issue.id: issue for issue in issues}
        story.take_in(issues)

    async def _carry_out(self) -> None:
        """Start work orders for the next issues, and give them the lanes in turn, until each has its result."""
        story = self._known()
        self._skip()
        self._begin(story.open_issues[: self.issues_of_a_run])
        while not all(work.done() for work in self._works.values()):
            if workflow.cancellation_reason() is not None:  # it may have come as something else was waited for
                raise asyncio.CancelledError
            self._news = False
            self._skip()
            await self._give_lanes()
            self._go_on_beside()
            workflow.set_current_details(story.details())
            await workflow.wait_condition(lambda: self._news)
        await self._notes.written()

    def _begin(self, issues: list[IssueState]) -> None:
        for issue in issues:
            work = self._works[issue.issue_id] = asyncio.create_task(self._work(issue))
            work.add_done_callback(partial(self._over, issue.issue_id))

    def _go_on_beside(self) -> None:
        """Start further work orders where all that are left wait for a person, as long as the history is short."""
        story, info = self._known(), workflow.info()
        waiting = [story.issues[name] for name, work in self._works.items() if not work.done()]
        following = [issue for issue in story.open_issues if issue.issue_id not in self._works]
        if self._holders or story.paused or story.stopping or not waiting or not following:
            return
        if not all(self._is_held_back(issue) for issue in waiting):
            return
        short = info.get_current_history_length() < _MOST_EVENTS and info.get_current_history_size() < _MOST_BYTES
        if short and workflow.patched("goes-on-beside"):
            self._begin(following[: self.issues_of_a_run - len(waiting)])

    def _is_held_back(self, issue: IssueState) -> bool:
        """Say whether nothing happens to an issue before a person has moved it, or one that it depends on."""
        away = issue.status is IssueStatus.WAITING and issue.order_id in self._held_back
        return away or (issue.status is IssueStatus.PLANNED and issue.issue_id not in self._known().to_skip)

    async def _work(self, issue: IssueState) -> None:
        """Have one issue worked on, and take in how that ended."""
        story = self._known()
        order = story.order_of(self._texts.get(issue.issue_id) or PipelineIssue(id=issue.issue_id))
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
                search_attributes=found_at_start(row),
                static_summary=f"{order.repository} {order.title or f'#{order.issue}'}"[:200],
                result_type=Task,
            )
        except (FailureError, asyncio.CancelledError) as failed:
            status, task, error = how_it_ended(failed, issue.order_id)
        self._ended(issue.issue_id, status, task, error)

    def _over(self, issue_id: str, work: asyncio.Task[None]) -> None:
        """See that an issue has a result whose work has ended without one: before it began, or by a fault."""
        if self._known().issues[issue_id].status not in CLOSED:
            fault = None if work.cancelled() else work.exception()
            status = IssueStatus.CANCELLED if fault is None else IssueStatus.FAILED
            why = TaskError(type=type(fault).__name__, message=str(fault)[:500]) if fault is not None else None
            self._ended(issue_id, status, None, why)

    def _ended(self, issue_id: str, status: IssueStatus, task: Task | None, error: TaskError | None) -> None:
        """Take in how an issue ended, have it noted, and free what it had."""
        story = self._known()
        if reason := story.to_skip.get(issue_id):
            status, error = IssueStatus.SKIPPED, skipped(reason)
        story.ended(story.issues[issue_id], status, workflow.now(), task, error)
        self._notes.note(issue_id)
        self.leaves(story.issues[issue_id].order_id)

    def _planned(self, issue: IssueState) -> None:
        self._notes.note(issue.issue_id)

    def _skip(self) -> None:
        """End what cannot or must not be carried out any more."""
        story = self._known()
        while lost := doomed(story.issues, story.to_skip):
            for issue, before in lost:
                status = "skipped" if before in story.to_skip else story.issues[before].status.value
                story.to_skip.setdefault(issue.issue_id, f"it depends on issue {before}, which is {status}")
        waiting = [each for each in story.open_issues if each.status in {IssueStatus.WAITING, IssueStatus.PLANNED}]
        for issue in waiting:
            if story.stopping:
                story.to_skip.setdefault(issue.issue_id, "the pipeline was stopped")
            if issue.issue_id not in story.to_skip:
                continue
            if work := self._works.get(issue.issue_id):
                work.cancel()
            else:
                self._ended(issue.issue_id, IssueStatus.SKIPPED, None, None)

    async def _give_lanes(self) -> None:
        """Give each free lane to the issue whose turn it is; one may let another have its turn."""
        story = self._known()
        while not (story.paused or story.stopping):
            wanted = [each for each in story.issues.values() if each.issue_id not in story.to_skip]
            planned = next_to_plan(wanted, self._ready, self._held_back, story.asked.plans_ahead)
            carried_out = next_to_execute(story.issues, story.to_skip)
            free = next((lane for lane in story.executors if lane.task_queue and not self._is_held(lane)), None)
            if planned is not None and not self._is_held(story.planner):
                self._ready.discard(planned.order_id)
                await self._give(planned, Role.PLANNER, story.planner)
            elif carried_out is not None and free is not None:
                await self._give(carried_out, Role.EXECUTOR, free)
            else:
                return

    def _is_held(self, lane: Lane) -> bool:
        return lane.id in self._holders

    async def _give(self, issue: IssueState, role: Role, lane: Lane) -> None:
        """Tell a work order that a lane is its own."""
        story = self._known()
        status = IssueStatus.PLANNING if role is Role.PLANNER else IssueStatus.EXECUTING
        story.change(issue, status=status, executor="" if role is Role.PLANNER else lane.id)
        given = story.visit(lane, issue)
        turnkey = LaneGrant(role=role, lane=given, visit=f"/{story.visits}", summarise=story.is_too_long(given))
        self._holders[lane.id] = (issue.order_id, turnkey.visit)
        order = workflow.get_external_workflow_handle(issue.order_id)
        # The wait for a signal swallows a cancel; the wait for a task that sends it does not.
        telling = asyncio.create_task(order.signal("take_lane", turnkey))
        await workflow.wait_condition(telling.done)
        try:
            await telling
        except FailureError:  # it has just ended, and says so
            self._holders.pop(lane.id, None)

    async def _hand_over(self) -> None:
        """Go on in a run with a short history."""
        story = self._known()
        await workflow.wait_condition(workflow.all_handlers_finished)
        texts = tuple(  # what they depend on is carried as well
            self._texts[issue.issue_id].model_copy(update={"depends_on": ()})
            for issue in story.open_issues
            if issue.issue_id in self._texts
        )
        carried = story.carried(self._notes.noted())
        workflow.continue_as_new(
            story.asked.model_copy(update={"issues": texts, "label": None, "carried": carried})
        )

    async def _close(self, status: PipelineStatus, error: TaskError | None = None) -> None:
        """End what is still under way, close both agents, and report."""
        story = self._known()
        for work in self._works.values():
            work.cancel()
        await _to_the_end(lambda: all(work.done() for work in self._works.values()))
        for issue in story.open_issues:
            story.change(issue, status=IssueStatus.CANCELLED)
        story.status, story.error, story.closed_at = status, error, timestamp(workflow.now())
        workflow.set_current_details(story.details())
        closing = asyncio.create_task(self._notes.close())
        await _to_the_end(lambda: closing.done() and workflow.all_handlers_finished())


async def _to_the_end(over: Callable[[], bool]) -> None:
    """Wait for what must be done also where a person cancels meanwhile."""
    while not over():
        with suppress(asyncio.CancelledError):
            await workflow.wait_condition(over)


def _merged(issue: PipelineIssue, read: dict[str, PipelineIssue]) -> PipelineIssue:
    """Return an issue with what its forge says of it."""
    there = read.get(issue.id) if issue.number is not None else None
    if there is None:
        return issue
    depends_on = (*issue.depends_on, *(each for each in there.depends_on if each not in issue.depends_on))
    return issue.model_copy(
        update={"title": (issue.title or there.title)[:_TITLE], "depends_on": depends_on[:_MOST_BEFORE]}
    )
