"""The workflow of a command in a comment: check the author, obey the command, and answer once."""

from typing import Final

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from septet.contracts.intake import ClaimIssue, CommandAnswer, CommentCall
    from septet.contracts.order import IssueRequest
    from septet.system.timestamps import timestamp
    from workflows.intake.intake import OPTIONS, start_order
    from workflows.wire.activity_stubs import ANSWER_COMMENT, CHECK_COMMENTER, CLAIM_ISSUE, OBEY_COMMENT

_TAKEN: Final = "Septet has taken this issue: work order `{}`."


@workflow.defn(name="CommentCommand")
class CommentCommandWorkflow:
    """One command of one comment. Its id is the comment's: each command is obeyed and answered once."""

    @workflow.run
    async def run(self, call: CommentCall) -> bool:
        """Check the command's author, carry out the command, and answer; return whether the command was obeyed."""
        standing = await CHECK_COMMENTER.start(call, **OPTIONS, summary=f"may {call.event.author} do this?")
        if not standing.is_obeyed:
            workflow.set_current_details(f"Ignored: {standing.why_not}.")
            return False
        call = call.model_copy(update={"order_id": standing.order_id})
        answer = await _take(call) if call.command.verb == "run" and not call.event.is_on_pull_request else None
        if answer is None:
            answer = await OBEY_COMMENT.start(call, **OPTIONS, summary=call.command.verb)
        workflow.set_current_details(answer.text)
        await ANSWER_COMMENT.start(answer, **OPTIONS, summary="answer")
        return True


async def _take(call: CommentCall) -> CommandAnswer | None:
    """Claim the issue, start its work order, and return the answer; `None` if the issue was claimed before."""
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
