"""The query, the updates with their validators, and the signals of a pipeline."""

import asyncio

from temporalio import workflow

from septet.board import SeatRequest
from septet.contracts.lanes import FilesChanged, LaneLeft
from septet.pipelines.inputs import IssueCall, PipelineCall
from septet.pipelines.views import IssueState, IssueStatus, PipelineView
from workflows.pipeline.notes import Notes
from workflows.pipeline.state import PipelineState
from workflows.wire.failures import refusal
from workflows.wire.inputs import reads_input

_SKIPPED = frozenset({IssueStatus.WAITING, IssueStatus.PLANNED})
_ANYBODY = PipelineCall()


class PipelineHandlers:
    """The handlers of one pipeline; a refused update adds nothing to the history."""

    def __init__(self) -> None:
        """Begin empty: `run` reads the input, because `__init__` cannot refuse wrong input."""
        self._state = PipelineState()
        self._notes: Notes
        self._waiting_orders: set[str] = set()
        self._absent_orders: set[str] = set()
        """The work orders that people moved to another stage on the board, or that have ended."""
        self._holders: dict[str, tuple[str, str]] = {}
        """For each lane, its present work order, and the id of that work order's visit."""
        self._order_tasks: dict[str, asyncio.Task[None]] = {}
        self._has_news = True

    @workflow.query(description="The pipeline, with the state of each issue.")
    def pipeline(self) -> PipelineView:
        """Return the pipeline with all its issues."""
        self._check_begun()
        return self._state.view()

    @workflow.update(description="Start nothing new until it is resumed; work in progress continues.")
    @reads_input("pause", PipelineCall)
    def pause(self, call: PipelineCall = _ANYBODY) -> PipelineView:
        """Start nothing new. The reply to an update has only the issue that the update names, or no issue."""
        self._state.take_word("paused", call)
        self._state.is_paused = self._has_news = True
        return self._state.view_of()

    @pause.validator
    @reads_input("pause", PipelineCall)
    def _may_pause(self, call: PipelineCall = _ANYBODY) -> None:
        del call
        self._check_open()
        if self._state.is_paused:
            raise refusal(
                f"{self._state.id} is already paused.",
                f"Resume it with `septet pipeline resume {self._state.id}`.",
            )

    @workflow.update(description="Continue after a pause.")
    @reads_input("resume", PipelineCall)
    def resume(self, call: PipelineCall = _ANYBODY) -> PipelineView:
        """Continue after a pause."""
        self._state.take_word("resumed", call)
        self._state.is_paused, self._has_news = False, True
        return self._state.view_of()

    @resume.validator
    @reads_input("resume", PipelineCall)
    def _may_resume(self, call: PipelineCall = _ANYBODY) -> None:
        del call
        self._check_open()
        if not self._state.is_paused:
            see = f"See what it does: septet pipeline show {self._state.id}"
            raise refusal(f"{self._state.id} is not paused.", see)

    @workflow.update(description="Finish the work in progress and start nothing else.")
    @reads_input("stop", PipelineCall)
    def stop(self, call: PipelineCall = _ANYBODY) -> PipelineView:
        """Finish the work in progress, and start nothing new."""
        self._state.take_word("stopped", call)
        self._state.is_stopping, self._state.is_paused, self._has_news = True, False, True
        return self._state.view_of()

    @stop.validator
    @reads_input("stop", PipelineCall)
    def _may_stop(self, call: PipelineCall = _ANYBODY) -> None:
        del call
        self._check_open()
        if self._state.is_stopping:
            raise refusal(f"{self._state.id} is already stopping.", "Cancel it to end the work in progress.")

    @workflow.update(description="Skip an issue that is not in progress.")
    @reads_input("skip", IssueCall)
    def skip(self, call: IssueCall) -> PipelineView:
        """Skip an issue, and every issue that depends on it."""
        who = call.who or "a person"
        self._state.to_skip[call.issue_id] = f"{who} skipped it: {call.why}" if call.why else f"{who} skipped it"
        self._has_news = True
        return self._state.view_of([call.issue_id])

    @skip.validator
    @reads_input("skip", IssueCall)
    def _may_skip(self, call: IssueCall) -> None:
        issue = self._find_issue(call.issue_id)
        if issue.status not in _SKIPPED:
            why = f"Issue {issue.issue_id} is {issue.status.value}."
            in_progress = issue.status in {IssueStatus.PLANNING, IssueStatus.EXECUTING}
            remedy = f"Cancel work in progress with `septet cancel {issue.order_id}`." if in_progress else ""
            raise refusal(why, remedy)

    @workflow.update(description="Plan an issue again whose plan is not being implemented yet.")
    @reads_input("replan", IssueCall)
    async def replan(self, call: IssueCall) -> PipelineView:
        """Plan an issue again as soon as the planner is free; the planner gets `why`."""
        issue = self._find_issue(call.issue_id)
        self._state.change_issue(issue, status=IssueStatus.WAITING, solution=None, planned_at=None)
        await workflow.get_external_workflow_handle(issue.order_id).signal("plan_again", call)
        self._waiting_orders.add(issue.order_id)
        self._has_news = True
        return self._state.view_of([call.issue_id])

    @replan.validator
    @reads_input("replan", IssueCall)
    def _may_replan(self, call: IssueCall) -> None:
        issue = self._find_issue(call.issue_id)
        if issue.status is not IssueStatus.PLANNED:
            why = f"Issue {issue.issue_id} is {issue.status.value}: only a planned issue can be planned again."
            raise refusal(why)

    @workflow.update(description="A host is dead: lanes there open on another. Some work may be paid for twice.")
    @reads_input("host_gone", str)
    def host_gone(self, host: str) -> None:
        """Give up a host: lanes on it open on another host for their next work orders.

        A work order that is in a lane now is notified separately.
        """
        self._state.lost_hosts.add(host)

    @host_gone.validator
    @reads_input("host_gone", str)
    def _has_lane_on(self, host: str) -> None:
        self._check_open()
        if not self._state.has_lane_on(host):
            raise refusal(f"no lane of {self._state.id} is on host {host}")

    @workflow.signal(description="A work order waits for the planner.")
    def waits(self, request: SeatRequest) -> None:
        """Record that a work order waits for a lane."""
        self._waiting_orders.add(request.id)
        self._absent_orders.discard(request.id)
        self._has_news = True

    @workflow.signal(description="A work order no longer waits, or has ended.")
    def leaves(self, order_id: str) -> None:
        """Free a work order's lane; if the planning of its issue has not ended, the issue waits again."""
        self._waiting_orders.discard(order_id)
        self._absent_orders.add(order_id)
        for lane in [lane for lane, (holder, _) in self._holders.items() if holder == order_id]:
            del self._holders[lane]
            issue = self._state.issue_of(order_id)
            if issue is not None and issue.status is IssueStatus.PLANNING:
                self._state.change_issue(issue, status=IssueStatus.WAITING)
        self._has_news = True

    @workflow.signal(description="A work order has left a lane, with what it knows about its plan.")
    def left(self, report: LaneLeft) -> None:
        """Free the lane, and record the plan that the work order reports."""
        if self._holders.get(report.lane.id) == (report.order_id, report.visit):
            del self._holders[report.lane.id]
            self._state.leave_lane(report)
            issue = self._state.issue_of(report.order_id)
            if issue is not None and issue.status is IssueStatus.PLANNED:
                self._notes.note(issue.issue_id)
        self._has_news = True

    def _note_news(self) -> None:
        self._has_news = True

    @workflow.signal(description="A work order has changed these files.")
    def changed(self, report: FilesChanged) -> None:
        """Record the files that a work order has changed."""
        self._state.change_files(report)
        self._has_news = True

    def _check_begun(self) -> None:
        if not self._state.id:
            raise refusal("The pipeline has not started yet.", "Try again in a moment.")

    def _check_open(self) -> None:
        self._check_begun()
        if self._state.closed_at is not None:
            raise refusal(f"{self._state.id} is over.")

    def _find_issue(self, issue_id: str) -> IssueState:
        self._check_open()
        if issue_id not in self._state.issues:
            see = f"See its issues: septet pipeline show {self._state.id}"
            raise refusal(f"{self._state.id} has no issue {issue_id}.", see)
        return self._state.issue_view(issue_id)
