"""The pipeline: one agent plans many issues, and one or more agents carry out these plans."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RawValue, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from septet.contracts.lanes import Lane, LaneGrant, Role
    from septet.contracts.task import TaskError
    from septet.errors import InvalidInputError
    from septet.pipelines.inputs import PIPELINE_ID, PipelineIssue, ReadIssues
    from septet.pipelines.issues import merge_issues, order_issues
    from septet.pipelines.schedule import next_to_execute, next_to_plan
    from septet.pipelines.views import IssueState, IssueStatus, PipelineRun, PipelineStatus, PipelineView
    from septet.system.text import table_cell, timestamp
    from workflows.pipeline.notes import Notes
    from workflows.pipeline.orders import PipelineBase
    from workflows.pipeline.state import PipelineState
    from workflows.wire.activity_stubs import READ_ISSUES
    from workflows.wire.cancellation import send_signal, wait_despite_cancel
    from workflows.wire.failures import GO_ON, explain_failure
    from workflows.wire.inputs import parse_input, takes_raw_input


_SHOWN: Final = 40
_CELL_LIMIT: Final = 60
_REASON_LIMIT: Final = 200
_BEGIN_ANEW: Final = "When the cause is gone, start another pipeline, with another `--id`."


@workflow.defn(name="Pipeline")
class Pipeline(PipelineBase):
    """Works on many issues, each in a work order: one agent plans, while others carry out finished plans."""

    @workflow.run
    @takes_raw_input
    async def run(self, order: RawValue | None = None, *rest: object) -> PipelineView:
        """Read the issues, plan and carry out each one, close the lanes, write the report; return the pipeline."""
        self._accept(order, rest)
        state = self._state
        try:
            await self._read_issues()
            await self._carry_out()
            if state.open_issues:
                await self._continue_as_new()
        except (ActivityError, asyncio.CancelledError) as error:
            if is_cancelled_exception(error):
                await self._close(PipelineStatus.CANCELLED)
                raise asyncio.CancelledError from error
            why, _ = explain_failure(error)
            why = why.model_copy(update={"remedy": why.remedy.replace(GO_ON, _BEGIN_ANEW)})
            await self._close(PipelineStatus.FAILED, why)
            raise ApplicationError(why.message, state.view(), type=why.type, non_retryable=True) from error
        await self._close(PipelineStatus.STOPPED if state.is_stopping else PipelineStatus.COMPLETED)
        return state.view()

    def _accept(self, order: RawValue | None, rest: tuple[object, ...]) -> None:
        info = workflow.info()
        continued = info.continued_run_id is not None
        request = parse_input(info.workflow_id, (order, *rest), PipelineRun, PIPELINE_ID, by_workflow=continued)
        if not continued and request.carried is not None:
            request = request.model_copy(update={"carried": None})
        self._texts = {issue.id: issue for issue in request.issue_list}
        self._state.begin(info.workflow_id, request, info.first_execution_run_id, info.workflow_start_time)
        self._notes = Notes(self._state)

    async def _read_issues(self) -> None:
        """Read the issues from the forge, and put them in order; refuse dependencies that form a circle."""
        state, request = self._state, self._state.request
        if state.issues:
            return
        numbers = tuple(issue.number for issue in request.issue_list if issue.number is not None)
        read: tuple[PipelineIssue, ...] = ()
        if numbers or request.label:
            read = (
                await READ_ISSUES.start(
                    ReadIssues(repository=request.repository, ids=tuple(map(str, numbers)), label=request.label),
                    start_to_close_timeout=timedelta(minutes=10),
                    retry_policy=RetryPolicy(maximum_interval=timedelta(minutes=1)),
                    summary=f"the issues of {request.repository}"[:200],
                )
            ).issues
        issues = merge_issues(request.issue_list, read)
        try:
            issues = list(order_issues(issues))
        except InvalidInputError as error:
            message = f"The input is not valid: {error.message} {error.remedy}".strip()
            raise ApplicationError(message, type="InvalidInput", non_retryable=True) from error
        self._texts = {issue.id: issue for issue in issues}
        state.add_issues(issues)

    async def _carry_out(self) -> None:
        """Start work orders and give them lanes, until each issue has a result."""
        state = self._state
        self._skip_issues()
        self._start_orders()
        while self._is_under_way or self._start_orders() or await self._has_news_as_notes_are_written():
            if workflow.cancellation_reason() is not None:  # it came during another wait
                raise asyncio.CancelledError
            self._has_news = False
            self._skip_issues()
            await self._give_lanes()
            self._start_orders()
            workflow.set_current_details(format_table(state))
            await workflow.wait_condition(lambda: self._has_news or not self._is_under_way)

    async def _has_news_as_notes_are_written(self) -> bool:
        """Wait until all notes are written; return whether a message arrived meanwhile."""
        self._has_news = False
        await self._notes.wait_until_written()
        return self._has_news

    async def _give_lanes(self) -> None:
        state = self._state
        while not (state.is_paused or state.is_stopping):
            unskipped = [each for each in state.issues.values() if each.issue_id not in state.to_skip]
            to_plan = next_to_plan(unskipped, self._waiting_orders, self._absent_orders, state.request.plans_ahead)
            to_execute = next_to_execute(state.issues, state.to_skip)
            free = next((lane for lane in state.executors if lane.task_queue and not self._is_taken(lane)), None)
            if to_plan is not None and not self._is_taken(state.planner):
                self._waiting_orders.discard(to_plan.order_id)
                await self._give_lane(to_plan, Role.PLANNER, state.planner)
            elif to_execute is not None and free is not None:
                await self._give_lane(to_execute, Role.EXECUTOR, free)
            else:
                return

    def _is_taken(self, lane: Lane) -> bool:
        return lane.id in self._holders

    async def _give_lane(self, issue: IssueState, role: Role, lane: Lane) -> None:
        state = self._state
        status = IssueStatus.PLANNING if role is Role.PLANNER else IssueStatus.EXECUTING
        state.change_issue(issue, status=status, executor="" if role is Role.PLANNER else lane.id)
        lane = state.prepare_visit(lane, issue)
        grant = LaneGrant(
            role=role,
            lane=lane,
            visit=f"/{state.visits}",
            summarise=state.is_too_long(lane),
            is_lost=state.is_lost(lane),
        )
        self._holders[lane.id] = (issue.order_id, grant.visit)
        if not await send_signal(
            issue.order_id, "take_lane", grant
        ):  # the work order has just ended, and signals `leaves`
            self._holders.pop(lane.id, None)

    async def _continue_as_new(self) -> None:
        state = self._state
        await workflow.wait_condition(workflow.all_handlers_finished)
        texts = tuple(  # the carried state has the dependencies
            self._texts[issue.issue_id].model_copy(update={"depends_on": ()})
            for issue in state.open_issues
            if issue.issue_id in self._texts
        )
        continued = state.continued_state(self._notes.noted_issues())
        workflow.continue_as_new(
            state.request.model_copy(update={"issues": texts, "label": None, "carried": continued})
        )

    async def _close(self, status: PipelineStatus, error: TaskError | None = None) -> None:
        """End the pipeline: cancel running work orders, close the agents' lanes, and write the report."""
        state = self._state
        for work in self._order_tasks.values():
            work.cancel()
        await wait_despite_cancel(lambda: all(work.done() for work in self._order_tasks.values()))
        for issue in state.open_issues:
            state.change_issue(issue, status=IssueStatus.CANCELLED)
        state.status, state.error, state.closed_at = status, error, timestamp(workflow.now())
        if status is PipelineStatus.CANCELLED:
            state.reason = ""  # the reason belongs to a pause or a resume
        workflow.set_current_details(format_table(state))
        closing = asyncio.create_task(self._notes.close())
        await wait_despite_cancel(lambda: closing.done() and workflow.all_handlers_finished())


def format_table(state: PipelineState) -> str:
    """Return the counts by status, and a Markdown table of open issues, or of the last issues if none is open."""
    view, issues = state.view_of(), list(state.issues.values())
    counts = Counter(each.status for each in issues)
    summary = ", ".join(f"{counts[name]} {name.value}" for name in IssueStatus if counts[name])
    reason = f" ({table_cell(view.reason, _REASON_LIMIT)})" if view.reason else ""
    lines = [f"**{view.id}** · **{view.status.value}**{reason} · {summary or 'no issues yet'}", ""]
    lines += ["| issue | status | solution | commit | pull request |", "| --- | --- | --- | --- | --- |"]
    rows = state.open_issues[:_SHOWN] or issues[-_SHOWN:]
    lines += [_format_row(issue) for issue in rows]
    if len(issues) > len(rows):
        lines += ["", f"and {len(issues) - len(rows)} more: `septet pipeline show {view.id}`"]
    return "\n".join(lines)


def _format_row(issue: IssueState) -> str:
    reason = f" ({table_cell(issue.error.message, _CELL_LIMIT)})" if issue.error else ""
    solution = f"{issue.solution.id}: {table_cell(issue.solution.summary, _CELL_LIMIT)}" if issue.solution else ""
    commit = (issue.commit_hash or "")[:12]
    return f"| {issue.issue_id} | {issue.status.value}{reason} | {solution} | {commit} | {issue.pr_url or ''} |"
