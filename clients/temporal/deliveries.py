"""What forges tell by webhooks, given on to the workflows that act on it: nothing is waited for."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from temporalio.client import Client
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from clients.temporal.followers import nudge_followers
from clients.temporal.intakes import IntakeClient
from clients.temporal.pull_request_watch import tell_watches
from clients.temporal.refusals import server_refusal
from septet.contracts.comment_commands import comment_workflow_id
from septet.contracts.comments import CommentCall
from septet.contracts.forge_events import CommentWritten, ForgeEvent, IssueChanged, PullRequestTouched
from septet.contracts.intake import IntakeInput, IntakePass
from septet.contracts.intake_replies import WebhookReply
from septet.contracts.issue_request import IssueRequest
from septet.contracts.pull_request import PullRequestNews
from septet.contracts.wire import Wire
from septet.forges.events.comment_commands import is_own_text, parse_command
from septet.git.engine.address import parse_address
from septet.system.timestamps import timestamp

_NOTHING: Final = WebhookReply(accepted=False, why="Septet does not act on this event.")
_NO_INTAKE: Final = WebhookReply(
    accepted=False, why="No intake takes issues with these labels of this repository."
)
_NOBODY_WATCHES: Final = WebhookReply(accepted=False, why="No work order watches this pull request.")
_NOBODY_FOLLOWS: Final = WebhookReply(accepted=False, why="No agent follows this pull request.")
_TOO_OLD: Final = WebhookReply(accepted=False, why="The comment is more than three days old.")
_MOST_AGE: Final = timedelta(days=3)
"""Of a command: GitHub sends deliveries again for so long, and nobody means one that is older."""
_NOTED_EVERY: Final = timedelta(minutes=10)
_NOTED: Final[dict[tuple[str, str, str], datetime]] = {}
"""When this process noted last that a repository sends webhooks."""
_KNOWN: Final = WebhookReply(accepted=False, why="This delivery was already received.")


@dataclass(frozen=True, slots=True)
class Deliveries:
    """The events that one Temporal namespace is told of.

    A delivery's own digest is in the ids of the workflows that it starts, so that the server itself refuses one
    that comes again, for as long as it remembers; after that what was done stands on the forge.
    """

    client: Client
    task_queue: str

    async def take(self, event: ForgeEvent | None, digest: str) -> WebhookReply:
        """Start what acts on an event, and say what that is.

        Args:
            event: What a signed delivery tells; `None` where that is nothing to act on.
            digest: What the delivery is known by.

        Raises:
            ServerNotReachedError: The server refused; the forge may send it again.
            InvalidInputError: The event names no repository.
        """
        try:
            match event:
                case IssueChanged():
                    return await self._take_issue(event, digest)
                case CommentWritten():
                    return await self._obey(event, digest)
                case PullRequestTouched():
                    await self._note(event)
                    return await self._nudge(event, digest)
                case _:
                    return _NOTHING
        except RPCError as error:
            raise server_refusal(error) from error

    async def _note(self, event: ForgeEvent) -> None:
        """Note that the repository sends webhooks, so that it is asked more rarely: about once an hour."""
        key, now = parse_address(event.repository, home=Path.home()).key, datetime.now(UTC)
        place = (self.client.namespace, self.client.service_client.config.target_host, key)
        if now - _NOTED.get(place, datetime.min.replace(tzinfo=UTC)) < _NOTED_EVERY:
            return
        _NOTED[place] = now
        await IntakeClient(self.client, self.task_queue).note_delivery(key, now)

    async def _take_issue(self, event: IssueChanged, digest: str) -> WebhookReply:
        intakes = await self._intakes(event)
        wanted = [each for each in intakes if each.label in event.labels and event.state == "open"]
        if not wanted:
            return _NO_INTAKE
        came_at = timestamp(datetime.now(UTC))
        delivered = IssueRequest(by=event.actor, at=came_at, text_sha256=event.text_sha256)
        request = IntakePass(intake=wanted[0], issue=event.number, delivered=delivered)
        return await self._start("Intake", request, f"intake/{event.forge}/{digest}")

    async def _obey(self, event: CommentWritten, digest: str) -> WebhookReply:
        """Have a command in a comment obeyed: by the comment's id, so that no second delivery does it again.

        What else people write on a pull request is for an agent that follows it.
        """
        command = parse_command(event.body)
        if command is None:
            if not event.is_on_pull_request or is_own_text(event.body):
                return _NOTHING
            forge, repository = event.forge, event.repository
            news = PullRequestTouched(forge=forge, repository=repository, url=event.url, look="followers")
            return await self._nudge(news, digest)
        if _age(event.created_at) > _MOST_AGE:
            return _TOO_OLD
        intakes = await self._intakes(event)
        if not intakes:
            return _NO_INTAKE
        key = parse_address(event.repository, home=Path.home()).key
        call = CommentCall(event=event, command=command, intake=intakes[0])
        return await self._start("CommentCommand", call, comment_workflow_id(event.forge, key, event.comment_id))

    async def _nudge(self, event: PullRequestTouched, digest: str) -> WebhookReply:
        """Have a pull request looked at now by those to whom the event is news."""
        match event.look:
            case "none":
                return _NOTHING
            case "followers":
                told = await nudge_followers(self.client, event, digest)
                return WebhookReply(accepted=True, workflows=told) if told else _NOBODY_FOLLOWS
            case _:
                news = PullRequestNews(url=event.url, state="merged") if event.look == "merged" else None
                told = await tell_watches(self.client, event.url, news)
                return WebhookReply(accepted=True, workflows=told) if told else _NOBODY_WATCHES

    async def _intakes(self, event: ForgeEvent) -> tuple[IntakeInput, ...]:
        key = parse_address(event.repository, home=Path.home()).key
        return await IntakeClient(self.client, self.task_queue).of_repository(key)

    async def _start(self, workflow: str, request: Wire, workflow_id: str) -> WebhookReply:
        """Start a workflow once, however often its event is delivered."""
        try:
            await self.client.start_workflow(
                workflow,
                request,
                id=workflow_id,
                task_queue=self.task_queue,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            )
        except WorkflowAlreadyStartedError:
            return _KNOWN
        return WebhookReply(accepted=True, workflows=(workflow_id,))


def _age(created_at: str) -> timedelta:
    """Return how long ago something was written; nothing for what does not say."""
    try:
        written = datetime.fromisoformat(created_at)
    except ValueError:
        return timedelta()
    return datetime.now(UTC) - (written if written.tzinfo is not None else written.replace(tzinfo=UTC))
