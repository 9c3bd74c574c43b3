"""Typed stubs of the activities, for workflows: a workflow starts an activity without importing its code."""

from dataclasses import dataclass
from typing import Final, Generic, TypeVar, Unpack

from temporalio import workflow
from temporalio.common import Priority

from septet.board import KnownOrders, OthersLook, WaitingOrders
from septet.budgets.account import AccountState
from septet.contracts.decisions import MoveReason
from septet.contracts.intake import (
    ClaimIssue,
    CommandAnswer,
    CommentCall,
    CommenterStanding,
    FindIssues,
    IssueClaim,
    IssuesFound,
)
from septet.contracts.lanes import CloseLanes, EnterLane, SessionSummary, SummariseCall
from septet.contracts.names import Step
from septet.contracts.pull_request_watch import PullRequestEnd, PullRequestLook
from septet.contracts.rework import PreparedRework
from septet.contracts.steps import EndCall, FinalizeCall, StepCall, StepResult, SweepCall
from septet.contracts.task import Notification
from septet.contracts.tracker import SessionMessage, SessionPrompted, TakeTrackedIssue, TrackedClaim
from septet.contracts.workspace import (
    AgentAnswer,
    AgentQuestion,
    CancelledWork,
    MoveWorkspace,
    OpenWorkspace,
    Workspace,
)
from septet.janitor.terms import SweepReport
from septet.pipelines.inputs import IssuesRead, ReadIssues
from septet.pipelines.views import PipelineView
from workflows.wire.policies import ActivityOptions

Input = TypeVar("Input")
Result = TypeVar("Result")
NOTHING: Final = type(None)
"""The type of an activity's missing input or result."""


@dataclass(frozen=True, slots=True)
class ActivityStub(Generic[Input, Result]):
    """The name, the input and the result of one activity."""

    name: str
    input_type: type[Input]
    result_type: type[Result]

    def start(
        self,
        request: Input,
        *,
        task_queue: str | None = None,
        activity_id: str | None = None,
        summary: str | None = None,
        priority: Priority = Priority.default,
        **options: Unpack[ActivityOptions],
    ) -> workflow.ActivityHandle[Result]:
        """Start the activity, and return its handle.

        Raises:
            ActivityError: Awaiting the handle raises this if the activity failed, timed out or was cancelled.
        """
        return workflow.start_activity(
            self.name,
            args=() if request is None else (request,),
            result_type=self.result_type,
            task_queue=task_queue,
            activity_id=activity_id,
            summary=summary,
            priority=priority,
            **options,
        )


STEPS: Final = {step: ActivityStub(step.value, StepCall, StepResult) for step in Step}
FINALIZE_JSON: Final = ActivityStub("finalize_json", FinalizeCall, StepResult)
READ_OUTGOING: Final = ActivityStub("read_outgoing", StepCall, StepResult)
END_WORK: Final = ActivityStub("end_work", EndCall, StepResult)
PREPARE_REWORK: Final = ActivityStub("prepare_rework", StepCall, PreparedRework)
REWORK: Final = ActivityStub("rework", StepCall, StepResult)
CANCEL_WORK_ORDER: Final = ActivityStub("cancel_work_order", MoveReason, NOTHING)

OPEN_WORKSPACE: Final = ActivityStub("open_workspace", OpenWorkspace, Workspace)
MOVE_WORKSPACE: Final = ActivityStub("move_workspace", MoveWorkspace, Workspace)
DELIVER_CANCEL: Final = ActivityStub("deliver_cancel", CancelledWork, NOTHING)
CHECK_AGENT: Final = ActivityStub("check_agent", AgentQuestion, AgentAnswer)
"""Clients start this activity to find out, before a work order starts, whether a host can use an agent."""
PROBE_HOST: Final = ActivityStub("probe_host", NOTHING, str)
SWEEP_HOST: Final = ActivityStub("sweep_host", SweepCall, SweepReport)

ENTER_LANE: Final = ActivityStub("enter_lane", EnterLane, Workspace)
CLOSE_LANES: Final = ActivityStub("close_lanes", CloseLanes, NOTHING)
SUMMARISE_SESSION: Final = ActivityStub("summarise_session", SummariseCall, SessionSummary)

READ_ISSUES: Final = ActivityStub("read_issues", ReadIssues, IssuesRead)
NOTE_RESULTS: Final = ActivityStub("note_results", PipelineView, NOTHING)
WRITE_REPORT: Final = ActivityStub("write_report", PipelineView, NOTHING)

FIND_ISSUES: Final = ActivityStub("find_issues", FindIssues, IssuesFound)
CLAIM_ISSUE: Final = ActivityStub("claim_issue", ClaimIssue, IssueClaim)
CHECK_COMMENTER: Final = ActivityStub("check_commenter", CommentCall, CommenterStanding)
OBEY_COMMENT: Final = ActivityStub("obey_comment", CommentCall, CommandAnswer)
ANSWER_COMMENT: Final = ActivityStub("answer_comment", CommandAnswer, NOTHING)

TELL_SESSION: Final = ActivityStub("tell_session", SessionMessage, NOTHING)
TAKE_TRACKED_ISSUE: Final = ActivityStub("take_tracked_issue", TakeTrackedIssue, TrackedClaim)
OBEY_PROMPT: Final = ActivityStub("obey_prompt", SessionPrompted, SessionMessage)

READ_ENDED_ACCOUNT: Final = ActivityStub("read_ended_account", AccountState, AccountState)
FIND_CLOSED: Final = ActivityStub("find_closed", KnownOrders, list[str])
FIND_WAITING: Final = ActivityStub("find_waiting", KnownOrders, WaitingOrders)
LOOK_AT_OTHERS: Final = ActivityStub("look_at_others", OthersLook, NOTHING)
LOOK_AT_PULL_REQUEST: Final = ActivityStub("look_at_pull_request", PullRequestLook, PullRequestEnd)
SEND_NOTIFICATION: Final = ActivityStub("send_notification", Notification, NOTHING)
