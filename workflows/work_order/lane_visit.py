"""A work order's stays in the lanes of its pipeline: first with the planner, then with an executor."""

from dataclasses import dataclass
from functools import partial
from typing import Self

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from septet.contracts.board import row_of
from septet.contracts.lanes import (
    EnterLane,
    FilesChanged,
    Lane,
    LaneGrant,
    LaneLeft,
    PlanningOutcome,
    Role,
    SessionContext,
    SessionSummary,
    SummariseCall,
)
from septet.contracts.order import WorkOrderInput
from septet.contracts.pipeline import IssueCall
from septet.contracts.solution import Outline
from septet.contracts.steps import StepResult
from septet.contracts.task import Task
from septet.contracts.workspace import OpenWorkspace, Workspace
from septet.pipelines.summary import no_summary
from workflows.hosts.activity_ids import ActivityIds
from workflows.hosts.host_watch import HostWatch
from workflows.wire.activity_stubs import ENTER_LANE, SUMMARISE_SESSION
from workflows.wire.cancellation import send_signal
from workflows.wire.failures import explain_failure
from workflows.wire.policies import OPENING_OPTIONS, summary_options


@dataclass
class LaneSession:
    """It may change on the way: a session that is lost or too long is followed by a new one."""

    id: str | None = None
    """`None`: a new one begins."""
    tokens: int = 0
    """How long it is."""
    context: SessionContext = "shared"
    summarised: bool = False
    """The lane's host keeps a summary, with which each new one begins."""

    @classmethod
    def of(cls, lane: Lane) -> Self:
        """Return the session as the lane is given."""
        session = cls(lane.session_id, lane.context_tokens, "shared", lane.summarised)
        if session.id is None:
            session._forget_context()
        return session

    def begin_anew(self, *, is_kept: bool) -> None:
        """Be followed by a new one; a summary is kept of it, or there is none but an earlier one's."""
        self.id, self.tokens, self.summarised = None, 0, is_kept or self.summarised
        self._forget_context()

    def follow(self, result: StepResult) -> None:
        """Go on as the session in which the agent answered last."""
        if result.session_id is None:
            return
        if self.id not in {None, result.session_id}:
            self._forget_context()
        elif not result.context_tokens:
            result = result.model_copy(update={"context_tokens": self.tokens})
        self.id, self.tokens = result.session_id, result.context_tokens

    def lane_values(self) -> dict[str, object]:
        """Return what the lane is told of it."""
        return {"session_id": self.id, "context_tokens": self.tokens, "summarised": self.summarised}

    def _forget_context(self) -> None:
        self.context = "summarised" if self.summarised else "fresh"


_MOST_FILES = 20


class LaneVisit:
    """Which lane a work order has, and with which session its agent goes on there."""

    def __init__(self, hosts: HostWatch) -> None:
        """Begin outside of all lanes; `hosts` know where the workspace is."""
        self._hosts = hosts
        self._session = LaneSession()
        self._next_grant: LaneGrant | None = None
        self._grant: LaneGrant | None = None
        self._replan_reason = ""

    def take_grant(self, grant: LaneGrant) -> None:
        """Take the pipeline's word that a lane is this work order's now."""
        self._next_grant = grant

    def plan_again(self, call: IssueCall) -> None:
        """Hear that a person wants another plan."""
        self._replan_reason = call.why or "another plan is wanted"

    async def wait_for_lane(self, role: Role) -> None:
        """Wait for a lane of a role."""
        await workflow.wait_condition(lambda: self._next_grant is not None and self._next_grant.role is role)

    async def wait_for_executor(self) -> str:
        """Wait for an executor; return what a person wants otherwise, where that comes first."""
        await workflow.wait_condition(lambda: self._replan_reason != "" or self._has_lane(Role.EXECUTOR))
        if self._has_lane(Role.EXECUTOR):
            return ""
        reason, self._replan_reason = self._replan_reason, ""
        await self.wait_for_lane(Role.PLANNER)
        return reason

    async def enter(
        self, opening: OpenWorkspace, ids: ActivityIds, plan: tuple[str, str] | None = None
    ) -> Workspace:
        """Enter the lane that was given, with the plan where there is one: its snapshot, and its path."""
        grant, self._next_grant = self._next_grant, None
        if grant is None:
            message = "no lane was given"
            raise RuntimeError(message)
        lane = grant.lane
        self._grant, self._session = grant, LaneSession.of(lane)
        snapshot, path = plan or ("", None)
        beside = lane.beside if lane.workspace is None else ()
        opening = opening.model_copy(update={"agent": lane.agent, "beside": beside})
        call = EnterLane(opening=opening, lane=lane, visit=grant.visit, plan_snapshot=snapshot, plan_path=path)
        if grant.is_lost and lane.workspace is not None:
            self._hosts.give_up(lane.workspace.host)
        return await self._hosts.enter(call, partial(_start_entering, ids))

    @property
    def session_id(self) -> str | None:
        """The session to go on with."""
        return self._session.id

    @property
    def is_too_long(self) -> bool:
        """Whether the lane's session is to be summarised before anything else."""
        return self._grant is not None and self._grant.summarise and self._session.id is not None

    async def begin_anew(self, call: SummariseCall, activity_id: str | None) -> SessionSummary:
        """Ask the session for a summary, and go on in a new one: with it, or without where there is none."""
        try:
            summary = await SUMMARISE_SESSION.start(
                call,
                task_queue=call.workspace.task_queue,
                activity_id=activity_id,
                summary=f"a summary of {call.workspace.lane}'s session",
                **summary_options(call.limits),
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            summary = SessionSummary(warning=no_summary(explain_failure(error)[0].message))
        self._session.begin_anew(is_kept=summary.kept_bytes > 0)
        return summary

    def follow_session(self, result: StepResult) -> None:
        """Go on with the session in which the agent answered last."""
        if self._grant is not None:
            self._session.follow(result)

    @property
    def branch(self) -> str:
        """The branch that it goes on with; empty where it has one of its own."""
        return self._grant.lane.branch if self._grant is not None else ""

    async def leave(
        self,
        order: WorkOrderInput,
        done_at: tuple[str, str] = ("", ""),
        *,
        task: Task,
        outline: Outline | None = None,
        plan: PlanningOutcome | None = None,
    ) -> None:
        """Report to the pipeline that its lane is free again, and the plan made in it.

        Args:
            order: What is worked on.
            done_at: Branch and last snapshot, where it was completed.
            task: The work order as it is now.
            outline: What is remembered of the plan.
            plan: Where it lies.
        """
        if self._grant is None:
            return
        role, lane, visit = self._grant.role, self._grant.lane, self._grant.visit
        workspace = self._hosts.workspace
        if workspace is not None and workspace.lane == lane.id:  # else it was never entered
            lane = lane.at(workspace)
        values = self._session.lane_values()
        branch, snapshot = done_at
        if lane.one_branch and role is Role.EXECUTOR and branch:
            values |= {"branch": branch, "starts_from": snapshot}
        session, self._grant, self._session = self._session, None, LaneSession()
        report = LaneLeft(
            order_id=workflow.info().workflow_id,
            role=role,
            lane=lane.model_copy(update=values),
            solution=outline,
            result=plan,
            done_at=snapshot,
            visit=visit,
            task=row_of(task),
            context=session.context,
        )
        await self._signal_pipeline(order, "left", report)

    async def report_changes(self, order: WorkOrderInput, result: StepResult, plan_path: str | None) -> None:
        """Report the changed files to the pipeline, without the plan's file."""
        files = tuple(change for change in result.files_changed if change.path != plan_path)
        report = FilesChanged(
            order_id=workflow.info().workflow_id,
            files=files[:_MOST_FILES],
            count=result.files_changed_count - (len(result.files_changed) - len(files)),
        )
        await self._signal_pipeline(order, "changed", report)

    def _has_lane(self, role: Role) -> bool:
        return self._next_grant is not None and self._next_grant.role is role

    async def _signal_pipeline(self, order: WorkOrderInput, signal: str, report: LaneLeft | FilesChanged) -> None:
        """Signal the pipeline; one that is over has no need to know."""
        if not await send_signal(order.pipeline or "", signal, report):
            workflow.logger.info("the pipeline is over")


def _start_entering(ids: ActivityIds, call: EnterLane) -> workflow.ActivityHandle[Workspace]:
    """Start the activity that enters a lane."""
    return ENTER_LANE.start(
        call,
        task_queue=call.lane.task_queue or None,
        activity_id=ids.of("enter_lane"),
        summary=f"lane {call.lane.id}",
        **OPENING_OPTIONS,
    )
