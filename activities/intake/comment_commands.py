"""Obey commands in comments: check the author, run the command, and reply with one comment."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import structlog
from temporalio import activity
from temporalio.client import Client

from activities.host.cancellation import cancellable_thread
from activities.host.host import Host
from activities.intake.issues import order_of_issue, order_of_pull_request
from septet.contracts.forge_events import CommentCommand, CommentWritten
from septet.contracts.intake import ANSWER_LIMIT, CommandAnswer, CommentCall, CommenterStanding
from septet.contracts.task import Task
from septet.errors import SeptetError
from septet.forges.events.comment_commands import USAGE
from septet.forges.forge import FollowedForge, Forge
from septet.forges.issue_history import Writers
from septet.git.engine.address import parse_address
from septet.system.masking import mask
from septet.system.text import cut, without_controls
from septet.telemetry.metrics import COMMENT_COMMANDS
from septet.telemetry.recorder import RECORDER

Decide = Callable[[Client, str, CommentCommand, str], Awaitable[Task]]
"""Runs a command about a work order; takes the client, the work order's id, the command, and the person."""
_REMEMBERED: Final = timedelta(hours=12)
"""How long every server remembers a comment's workflow; later, only Septet's reply on the forge shows that the
command was obeyed."""
_log = structlog.get_logger()


async def decide_nothing(client: Client, order_id: str, command: CommentCommand, who: str) -> Task:
    """Raise, because this worker was started without a function that carries out decisions.

    Raises:
        SeptetError: Always.
    """
    del client, command, who
    raise SeptetError(
        f"This worker cannot carry out decisions about {order_id}.",
        remedy="Start it with `septet worker` or `septet up`.",
    )


@dataclass(frozen=True, slots=True)
class CommentActivities:
    """Checks the authors of comments, obeys their commands and replies, with one host's keys."""

    host: Host
    decide: Decide = decide_nothing

    @activity.defn(name="check_commenter")
    async def check_commenter(self, call: CommentCall) -> CommenterStanding:
        """Return whether to obey a comment, and which work order the comment is about.

        The comment's author must have the right to push. An old comment that has a reply is not obeyed again.
        Idempotent; writes nothing.

        Raises:
            ApplicationError: The forge did not answer, or refused.
        """
        async with self.host.working():
            standing = await cancellable_thread(self.host.threads.network, self._check, call)
            if standing.is_obeyed:
                order_id = await self._find_order(call) or ""
                standing = standing.model_copy(update={"order_id": order_id})
        RECORDER.record(
            COMMENT_COMMANDS,
            forge=call.event.forge,
            verb=call.command.verb,
            outcome="obeyed" if standing.is_obeyed else "ignored",
        )
        if not standing.is_obeyed:
            event = call.event
            where = {"repository": event.repository, "number": event.number, "comment": event.comment_id}
            _log.info("comment_ignored", author=event.author, why=standing.why_not, **where)
        return standing

    @activity.defn(name="obey_comment")
    async def obey_comment(self, call: CommentCall) -> CommandAnswer:
        """Carry out a command about a work order, and return the reply to the comment.

        Idempotent: this repeats no decision of an earlier attempt. The reply shows the work order's present state.

        Raises:
            ApplicationError: The server or a worker did not answer.
        """
        async with self.host.working():
            event = call.event
            return CommandAnswer(
                repository=call.intake.repository,
                number=event.number,
                comment_id=event.comment_id,
                text=cut(mask(without_controls(await self._carry_out(call))), ANSWER_LIMIT),
                is_on_pull_request=event.is_on_pull_request,
            )

    @activity.defn(name="answer_comment")
    async def answer_comment(self, answer: CommandAnswer) -> None:
        """Write the reply as one comment. Idempotent: an earlier reply is found by its hidden mark.

        Raises:
            ApplicationError: The forge did not answer, or refused.
        """

        def write() -> None:
            _, forge = self.host.forges.of(answer.repository)
            marker = f"answer-{answer.comment_id}"
            if answer.is_on_pull_request and isinstance(forge, FollowedForge):
                forge.conversation(answer.number).put_comment(marker, answer.text)
            else:
                forge.put_comment(answer.number, marker, answer.text)

        async with self.host.working():
            await cancellable_thread(self.host.threads.network, write)

    def _check(self, call: CommentCall) -> CommenterStanding:
        event = call.event
        _, forge = self.host.forges.of(call.intake.repository)
        if not Writers(forge, self.host.settings.trusted_accounts).may_write(event.author):
            return CommenterStanding(is_obeyed=False, why_not=f"{event.author} may not push to the repository")
        if _is_old(event.created_at) and _is_answered(forge, event):
            return CommenterStanding(is_obeyed=False, why_not="it was already answered")
        return CommenterStanding(is_obeyed=True)

    async def _carry_out(self, call: CommentCall) -> str:
        event, command = call.event, call.command
        if command.verb == "unknown":
            return USAGE
        if command.verb == "approve" and command.plan_sha256 is None and not command.findings:
            return (
                "Name the plan that you have read, or the findings: `/septet approve PLAN_SHA256` or `FINDING…`."
            )
        if command.verb == "reject" and not command.words:
            return "Say what is wrong with the plan: `/septet reject [PLAN_SHA256] FEEDBACK`."
        order_id = call.order_id or await self._find_order(call)
        if order_id is None:
            return "There is no work order for this yet. Comment `/septet run` on the issue to start one."
        who = f"{event.author} on {event.forge}"
        try:
            task = await self.decide(activity.client(), order_id, command, who)
        except SeptetError as error:
            if error.retryable:
                raise
            return " ".join(part for part in (f"`{order_id}`: {error.message}", error.remedy) if part)
        return f"`{order_id}` is now {task.status.value}, at stage {task.stage.value}."

    async def _find_order(self, call: CommentCall) -> str | None:
        address, client = parse_address(call.intake.repository, home=Path.home()), activity.client()
        if call.event.is_on_pull_request:
            return await order_of_pull_request(client, call.event.url)
        return await order_of_issue(client, address, call.event.number)


def _is_answered(forge: Forge, event: CommentWritten) -> bool:
    marker = f"answer-{event.comment_id}"
    if event.is_on_pull_request and isinstance(forge, FollowedForge):
        return forge.conversation(event.number).has_comment(marker)
    return forge.has_comment(event.number, marker)


def _is_old(created_at: str) -> bool:
    """Return whether a server may have forgotten a comment's workflow; `True` if the comment has no time."""
    try:
        written = datetime.fromisoformat(created_at)
    except ValueError:
        return True
    written = written if written.tzinfo is not None else written.replace(tzinfo=UTC)
    return datetime.now(UTC) - written > _REMEMBERED
