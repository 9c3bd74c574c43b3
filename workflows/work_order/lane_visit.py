"""A work order's visits to the lanes of its pipeline: first the planner's lane, then an executor's."""

from dataclasses import dataclass
from functools import partial
from typing import Self

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

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
from septet.contracts.names import Step
from septet.contracts.order import WorkOrderInput
from septet.contracts.solution import Outline
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import Task
from septet.contracts.task_rows import row_of
from septet.contracts.workspace import OpenWorkspace, Workspace
from septet.pipelines.inputs import IssueCall
from septet.pipelines.notes import no_summary
from workflows.hosts.host_watch import HostWatch
from workflows.hosts.steps import ActivityIds
from workflows.wire.activity_stubs import ENTER_LANE, SUMMARISE_SESSION
from workflows.wire.cancellation import send_signal
from workflows.wire.failures import explain_failure
from workflows.wire.policies import OPENING_OPTIONS, summary_options


@dataclass
class LaneSession:
    """The agent's session in a lane; a lost or too long session is replaced by a new one."""

    id: str | None = None
    """The session's id; `None` to start a new session."""
    tokens: int = 0
    context: SessionContext = "shared"
    summarised: bool = False
    """Whether the lane's host has a summary of earlier sessions, with which new sessions begin."""

    @classmethod
    def of(cls, lane: Lane) -> Self:
        """Return the session with which a work order enters `lane`."""
        session = cls(lane.session_id, lane.context_tokens, "shared", lane.summarised)
        if session.id is None:
            session._forget_context()
        return session

    def begin_anew(self, *, is_kept: bool) -> None:
        """Begin a new session, with the host's last summary if any; `is_kept`: the old session has a summary."""
        self.id, self.tokens, self.summarised = None, 0, is_kept or self.summarised
        self._forget_context()

    def follow(self, result: StepResult) -> None:
        """From now on, continue the session in which the agent gave its last answer."""
        if result.session_id is None:
            return
        if self.id not in {None, result.session_id}:
            self._forget_context()
        elif not result.context_tokens:
            result = result.model_copy(update={"context_tokens": self.tokens})
        self.id, self.tokens = result.session_id, result.context_tokens

    def _forget_context(self) -> None:
        self.context = "summarised" if self.summarised else "fresh"


class LaneVisit:
    """The lane that a work order visits, and its agent's session in the lane."""

    def __init__(self, hosts: HostWatch) -> None:
        self._hosts = hosts
        self._session = LaneSession()
        self._next_grant: LaneGrant | None = None
        self._grant: LaneGrant | None = None
        self._replan_reason = ""

    def take_grant(self, grant: LaneGrant) -> None:
        """Record the lane that the pipeline has given."""
        self._next_grant = grant

    def plan_again(self, call: IssueCall) -> None:
        """Record that a person wants another plan."""
        self._replan_reason = call.why or "another plan is wanted"

    async def wait_for_lane(self, role: Role) -> None:
        """Wait until the pipeline gives the work order a lane with this role."""
        await workflow.wait_condition(lambda: self._next_grant is not None and self._next_grant.role is role)

    async def wait_for_executor(self) -> str:
        """Wait for an executor's lane, and return an empty text.

        If a person wants another plan first, wait for the planner's lane, and return the person's reason.
        """
        await workflow.wait_condition(lambda: self._replan_reason != "" or self._has_lane(Role.EXECUTOR))
        if self._has_lane(Role.EXECUTOR):
            return ""
        reason, self._replan_reason = self._replan_reason, ""
        await self.wait_for_lane(Role.PLANNER)
        return reason

    async def enter(
        self, opening: OpenWorkspace, ids: ActivityIds, plan: tuple[str, str] | None = None
    ) -> Workspace:
        """Enter the lane, with the plan's snapshot and path if there is a plan; return the workspace."""
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
        """The session that the next step continues; `None` for a new session."""
        return self._session.id

    @property
    def is_too_long(self) -> bool:
        """Whether the lane's session is so long that the agent must first summarise it."""
        return self._grant is not None and self._grant.summarise and self._session.id is not None

    async def begin_anew(self, call: SummariseCall, activity_id: str | None) -> SessionSummary:
        """Request a summary of the session, and return it; begin a new session even if there is no summary."""
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
        """From now on, continue the session in which the agent gave its last answer."""
        if self._grant is not None:
            self._session.follow(result)

    @property
    def branch(self) -> str:
        """The one branch of the pipeline; empty if each work order has its own branch."""
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
        """Report to the pipeline that the lane is free, with the work order's state and its plan.

        Args:
            done_at: The branch and the last snapshot of a completed work order.
            plan: The plan's path, when the plan was made, and how long that took.
        """
        if self._grant is None:
            return
        role, lane, visit = self._grant.role, self._grant.lane, self._grant.visit
        workspace = self._hosts.workspace
        if workspace is not None and workspace.lane == lane.id:  # else the lane was never entered
            lane = lane.at(workspace)
        branch, snapshot = done_at
        session, self._grant, self._session = self._session, None, LaneSession()
        values: dict[str, object] = {
            "session_id": session.id,
            "context_tokens": session.tokens,
            "summarised": session.summarised,
        }
        if lane.one_branch and role is Role.EXECUTOR and branch:
            values |= {"branch": branch, "starts_from": snapshot}
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
        """Report to the pipeline which files a step changed, except the plan's file."""
        files = tuple(change for change in result.files_changed if change.path != plan_path)
        report = FilesChanged(
            order_id=workflow.info().workflow_id,
            files=files[:20],
            count=result.files_changed_count - (len(result.files_changed) - len(files)),
        )
        await self._signal_pipeline(order, "changed", report)

    def _has_lane(self, role: Role) -> bool:
        return self._next_grant is not None and self._next_grant.role is role

    async def _signal_pipeline(self, order: WorkOrderInput, signal: str, report: LaneLeft | FilesChanged) -> None:
        """Signal the pipeline, unless it has ended."""
        if not await send_signal(order.pipeline or "", signal, report):
            workflow.logger.info("the pipeline is over")


def _start_entering(ids: ActivityIds, call: EnterLane) -> workflow.ActivityHandle[Workspace]:
    return ENTER_LANE.start(
        call,
        task_queue=call.lane.task_queue or None,
        activity_id=ids.of("enter_lane"),
        summary=f"lane {call.lane.id}",
        **OPENING_OPTIONS,
    )


class RoleSessions:
    """The sessions of the planning and the executing agent, outside of pipelines."""

    def __init__(self) -> None:
        self._sessions: dict[Role, str] = {}

    def session_of(self, step: Step) -> str | None:
        """Return the session that a step continues; `None` for a new session."""
        return self._sessions.get(_role_of(step))

    def follow(self, call: StepCall, result: StepResult) -> None:
        """Remember the session of the agent's last answer, if steps share sessions."""
        if call.shares_session and not call.pipeline and result.session_id is not None:
            self._sessions[_role_of(call.step)] = result.session_id

    def forget(self) -> None:
        """Forget all sessions, because after a reset they would know of work that the worktree does not have."""
        self._sessions.clear()


def _role_of(step: Step) -> Role:
    return Role.PLANNER if step.number <= Step.FIND_PLAN_FILE.number else Role.EXECUTOR
