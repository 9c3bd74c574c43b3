"""The workflows of intakes: start work orders for issues, and obey commands in comments."""

from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.workflow import ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from septet.contracts.forge_events import CommandComment
    from septet.contracts.intake import (
        SEEN_LIMIT,
        ClaimIssue,
        CommandAnswer,
        CommentCall,
        FindIssues,
        IntakeInput,
        IntakePass,
        IntakeResult,
    )
    from septet.contracts.order import IssueRequest, WorkOrderInput
    from septet.contracts.task_rows import MEMO, first_task, row_of, waits_in
    from septet.system.text import timestamp
    from workflows.wire.activity_stubs import (
        ANSWER_COMMENT,
        CHECK_COMMENTER,
        CLAIM_ISSUE,
        FIND_ISSUES,
        OBEY_COMMENT,
    )
    from workflows.wire.policies import ActivityOptions
    from workflows.wire.search_attributes import start_attributes

OPTIONS: Final = ActivityOptions(
    start_to_close_timeout=timedelta(minutes=10),
    schedule_to_close_timeout=timedelta(days=1),
    heartbeat_timeout=timedelta(seconds=20),
    retry_policy=RetryPolicy(
        initial_interval=timedelta(seconds=1),
        backoff_coefficient=2.0,
        maximum_interval=timedelta(minutes=5),
        maximum_attempts=0,
    ),
)
"""The options of an intake's activities. An activity survives a night without the forge, while the schedule starts
no second pass. Missing heartbeats reveal the death of a worker that has not yet recorded its attempt."""


@workflow.defn(name="Intake")
class Intake:
    """One pass over the issues of a repository or a team, or the claim of one issue that a webhook reports.

    A claim is a git ref in the repository, or a mark on a tracker's issue. Each issue thereby gets one work order,
    even if passes overlap, a pass is reset, or Temporal has deleted the work order long ago.
    """

    @workflow.run
    async def run(self, request: IntakePass) -> IntakeResult:
        """Find issues, claim each one, and start its work order."""
        intake = request.intake
        last = _last_pass() if request.issue is None else IntakeResult()
        found = await FIND_ISSUES.start(
            FindIssues(
                repository=intake.repository,
                label=intake.label,
                issue=request.issue,
                comments_since=last.comments_until,
                comments_seen=last.comments_seen,
                passed_over=last.passed_over,
            ),
            **OPTIONS,
            summary=f"which issues with the label {intake.label} are new?",
        )
        started: list[str] = []
        refused: dict[int, str] = {}
        for number in found.numbers:
            order_id, why_not = await _take(intake, number, request.delivered)
            started += [order_id] if order_id else []
            refused |= {number: why_not} if why_not else {}
        workflow.set_current_details(
            f"**{intake.repository}** · label `{intake.label}` · {len(started)} of {len(found.numbers)} taken\n\n"
            + "\n".join(
                [*(f"- `{each}`" for each in started), *(f"- #{each}: {refused[each]}" for each in refused)]
            )
        )
        for comment in found.comments:
            await _obey(intake, comment)
        passed_over = (*(each for each in last.passed_over if each not in found.numbers), *refused)
        return IntakeResult(
            started=tuple(started),
            comments_until=found.comments_until or last.comments_until,
            comments_seen=found.comments_seen or last.comments_seen,
            passed_over=passed_over[-SEEN_LIMIT:],
        )


def _last_pass() -> IntakeResult:
    """Return the previous pass's result, from which this pass continues."""
    if workflow.has_last_completion_result():
        last = workflow.get_last_completion_result(IntakeResult)
        if last is not None and last.comments_until:
            return last
    return IntakeResult(comments_until=timestamp(workflow.now()))


async def _obey(intake: IntakeInput, comment: CommandComment) -> None:
    """Start the workflow of a command, under the same id that a webhook would give it."""
    event = comment.event.model_copy(update={"repository": intake.repository})
    try:
        await workflow.start_child_workflow(
            "CommentCommand",
            CommentCall(event=event, command=comment.command, intake=intake),
            id=comment.workflow_id,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            parent_close_policy=ParentClosePolicy.ABANDON,
        )
    except WorkflowAlreadyStartedError:
        return


async def _take(intake: IntakeInput, number: int, delivered: IssueRequest | None) -> tuple[str, str]:
    """Claim an issue and start its work order; return the work order's id, or an empty id and the reason."""
    now = timestamp(workflow.now())
    claim = await CLAIM_ISSUE.start(
        ClaimIssue(
            repository=intake.repository,
            issue=number,
            claimant=workflow.info().workflow_id,
            claimed_at=now,
            label=intake.label,
            delivered=delivered,
        ),
        **OPTIONS,
        summary=f"take issue {number}",
    )
    if not claim.is_own:
        return "", claim.why_not
    tracked, intake = claim.tracked, claim.intake or intake
    order = intake.order_for(number, claim.requested) if tracked is None else intake.order_for_tracked(tracked)
    return (claim.order_id if await start_order(order, claim.order_id, now) else ""), ""


async def start_order(order: WorkOrderInput, order_id: str, now: str) -> bool:
    """Start the work order of a claimed issue; return `False` if the work order exists already."""
    row = row_of(first_task(order_id, order, waits_in(order), now))
    issue = f"#{order.issue}" if order.tracker is None else order.tracker.key
    try:
        await workflow.start_child_workflow(
            "WorkOrder",
            order,
            id=order_id,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            parent_close_policy=ParentClosePolicy.ABANDON,
            memo={MEMO: row},
            search_attributes=start_attributes(row),
            static_summary=f"{order.repository} {issue}"[:200],
        )
    except WorkflowAlreadyStartedError:  # by this workflow, before it was reset
        return False
    return True


_TAKEN: Final = "Septet has taken this issue: work order `{}`."


@workflow.defn(name="CommentCommand")
class CommentCommandWorkflow:
    """One command in a comment; the workflow's id comes from the comment, so each command is obeyed once."""

    @workflow.run
    async def run(self, call: CommentCall) -> bool:
        """Check the author, carry out the command, and reply; return whether the command was obeyed."""
        standing = await CHECK_COMMENTER.start(call, **OPTIONS, summary=f"may {call.event.author} do this?")
        if not standing.is_obeyed:
            workflow.set_current_details(f"Ignored: {standing.why_not}.")
            return False
        call = call.model_copy(update={"order_id": standing.order_id})
        answer = (
            await _take_issue(call) if call.command.verb == "run" and not call.event.is_on_pull_request else None
        )
        if answer is None:
            answer = await OBEY_COMMENT.start(call, **OPTIONS, summary=call.command.verb)
        workflow.set_current_details(answer.text)
        await ANSWER_COMMENT.start(answer, **OPTIONS, summary="answer")
        return True


async def _take_issue(call: CommentCall) -> CommandAnswer | None:
    """Claim the issue, start its work order, and return the reply; `None` if the issue was claimed before."""
    event, now = call.event, timestamp(workflow.now())
    request = ClaimIssue(
        repository=call.intake.repository,
        issue=event.number,
        claimant=workflow.info().workflow_id,
        claimed_at=now,
        label=call.intake.label,
        commanded=IssueRequest(by=event.author, at=event.created_at or now, text_sha256=event.text_sha256),
    )
    claim = await CLAIM_ISSUE.start(request, **OPTIONS, summary=f"take issue {event.number}")
    if not claim.is_own:
        return None
    intake = claim.intake or call.intake
    await start_order(intake.order_for(event.number, claim.requested), claim.order_id, now)
    return CommandAnswer(
        repository=call.intake.repository,
        number=event.number,
        comment_id=event.comment_id,
        text=_TAKEN.format(claim.order_id),
    )
