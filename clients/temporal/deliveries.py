"""Pass a forge's webhooks on to the workflows that act on them, without waiting for their results."""

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
"""The greatest age of a command: GitHub redelivers for three days, and an older command is not meant any more."""
_NOTED_EVERY: Final = timedelta(minutes=10)
_NOTED: Final[dict[tuple[str, str, str], datetime]] = {}
"""When this process last recorded that a repository sends webhooks."""
_KNOWN: Final = WebhookReply(accepted=False, why="This delivery was already received.")


@dataclass(frozen=True, slots=True)
class Deliveries:
    """The webhooks' events for one Temporal namespace.

    The ids of the workflows that a delivery starts contain its digest, so that the server itself refuses a repeat
    within its retention; after that, the forge shows what was done.
    """

    client: Client
    task_queue: str

    async def take(self, event: ForgeEvent | None, digest: str) -> WebhookReply:
        """Start or notify the workflows that act on an event, and return their ids.

        Args:
            event: The event of a signed delivery; `None` if Septet does not act on such events.
            digest: The delivery's identity.

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
        """Record that the repository sends webhooks, so that it is polled only about once an hour."""
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
        """Start a comment's command once: the workflow's id contains the comment's id.

        A comment without a command on a pull request goes to the agent that follows the pull request.
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
        """Make the workflows that the event concerns check the pull request now."""
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
    """Return the time since a timestamp; zero if the text is no timestamp."""
    try:
        written = datetime.fromisoformat(created_at)
    except ValueError:
        return timedelta()
    return datetime.now(UTC) - (written if written.tzinfo is not None else written.replace(tzinfo=UTC))
