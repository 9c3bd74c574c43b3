"""Receive webhooks of forges and trackers, and start or notify the workflows that act on them."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from temporalio.client import Client
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from activities.host.payloads import memo_json
from clients.executions.messages import server_refusals
from clients.executions.task_rows import task_of_row
from clients.temporal.intakes import IntakeClient
from septet.contracts.forge_events import (
    CommentWritten,
    ForgeEvent,
    IssueChanged,
    PullRequestTouched,
    comment_workflow_id,
)
from septet.contracts.intake import CommentCall, IntakeInput, IntakePass, WebhookReply
from septet.contracts.names import FOLLOWS
from septet.contracts.order import IssueRequest
from septet.contracts.pull_request_watch import PullRequestNews, PullRequestNudge
from septet.contracts.task import Task
from septet.contracts.tracker import SessionPrompted, SessionStarted
from septet.contracts.wire import Wire
from septet.errors import SealedError
from septet.forges.events.comment_commands import is_own_text, parse_command
from septet.forges.values import pull_request_number
from septet.git.engine.address import parse_address
from septet.system.text import timestamp

_FOLLOWED: Final = (
    'WorkflowType="PullRequest" AND ExecutionStatus="Running" '
    'AND SeptetStage IN ("review", "executing") AND SeptetPullRequest {} "{}"'
)
_MOST_ROWS: Final = 10_000
"""The most rows to read for one repository: an event of a check names a commit, which no query can filter."""


async def tell_watches(client: Client, pr_url: str, news: PullRequestNews | None = None) -> tuple[str, ...]:
    """Send `news` to a pull request's watches, or without `news` make them check now; return the watches' ids.

    Raises:
        RPCError: The server refused.
    """
    if '"' in pr_url or "\\" in pr_url:  # a query cannot contain these characters
        return ()
    told = []
    query = f'WorkflowType="PullRequest" AND ExecutionStatus="Running" AND SeptetPullRequest="{pr_url}"'
    async for row in client.list_workflows(query):
        handle = client.get_workflow_handle(row.id, run_id=row.run_id)
        await (handle.signal("nudge") if news is None else handle.signal("looked", news))
        told.append(row.id)
    return tuple(told)


async def nudge_followers(client: Client, event: PullRequestTouched, digest: str) -> tuple[str, ...]:
    """Notify the watches of an event's pull request that an agent follows; return the watches' ids.

    Raises:
        RPCError: The server refused.
    """
    where = event.url or f"{event.repository.rstrip('/')}/"
    if '"' in where or "\\" in where:  # a query cannot contain these characters
        return ()
    query = _FOLLOWED.format("=" if event.url else "STARTS_WITH", where)
    told = []
    async for row in client.list_workflows(query, limit=_MOST_ROWS):
        try:
            is_followed = await memo_json(row, FOLLOWS) == b"true"
        except SealedError:
            continue
        if not is_followed or not (event.url or _is_about(event, await task_of_row(row))):
            continue
        handle = client.get_workflow_handle(row.id, run_id=row.run_id)
        await handle.signal("nudge", PullRequestNudge(delivery=digest))
        told.append(row.id)
    return tuple(told)


def _is_about(checks: PullRequestTouched, task: Task) -> bool:
    """Return whether an event about checks names the task's last commit or the task's pull request."""
    if checks.commit and checks.commit == task.commit_sha:
        return True
    return bool(checks.pull_requests) and pull_request_number(task.pr_url or "") in checks.pull_requests


_NOTHING: Final = WebhookReply(accepted=False, why="Septet does not act on this event.")
_NO_INTAKE: Final = WebhookReply(
    accepted=False, why="No intake takes issues with these labels of this repository."
)
_NOBODY_WATCHES: Final = WebhookReply(accepted=False, why="No work order watches this pull request.")
_NOBODY_FOLLOWS: Final = WebhookReply(accepted=False, why="No agent follows this pull request.")
_MOST_AGE: Final = timedelta(days=3)
"""The greatest age of a command that is obeyed. GitHub redelivers for three days."""
_NOTED_EVERY: Final = timedelta(minutes=10)
_NOTED: Final[dict[tuple[str, str, str], datetime]] = {}
"""The times at which this process last recorded that a repository sends webhooks."""


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Receives webhooks, and passes their events on to the workflows of one Temporal namespace.

    An event starts a workflow whose id contains the delivery's digest, or the id of the comment, session or
    prompt. Temporal therefore refuses a repeated delivery within its retention. After the retention, Septet's
    claim or reply on the forge or the tracker shows the repeat.
    """

    client: Client
    task_queue: str

    async def take(self, event: ForgeEvent | None, digest: str) -> WebhookReply:
        """Start or notify the workflows that act on an event, and return their ids.

        Raises:
            ServerNotReachedError: The server does not answer, or refuses; the forge may send the event again.
            InvalidInputError: The event names no repository.
        """
        with server_refusals():
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

    async def take_session(self, event: SessionStarted | SessionPrompted | None) -> WebhookReply:
        """Start the workflow that acts on a tracker's event, and return the workflow's id.

        Raises:
            ServerNotReachedError: The server does not answer, or refuses; the tracker sends the event again.
        """
        match event:
            case SessionStarted():
                name, key = "TrackerSession", f"session/{event.issue.tracker}/{event.issue.session}"
            case SessionPrompted():
                name, key = "TrackerPrompt", f"prompt/{event.issue.tracker}/{event.prompt_id}"
            case None:
                return _NOTHING
        with server_refusals():
            return await self._start(name, event, key, event.issue.key)

    async def _note(self, event: ForgeEvent) -> None:
        """Record that the repository sends webhooks, so that workers poll the forge only about once an hour."""
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
        """Start a workflow for a comment's command; the comment's id is in the workflow's id, to refuse a repeat.

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
            return WebhookReply(accepted=False, why="The comment is more than three days old.")
        intakes = await self._intakes(event)
        if not intakes:
            return _NO_INTAKE
        key = parse_address(event.repository, home=Path.home()).key
        call = CommentCall(event=event, command=command, intake=intakes[0])
        return await self._start("CommentCommand", call, comment_workflow_id(event.forge, key, event.comment_id))

    async def _nudge(self, event: PullRequestTouched, digest: str) -> WebhookReply:
        """Notify the watches that the event concerns; return the reply to the delivery."""
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

    async def _start(
        self, workflow: str, request: Wire, workflow_id: str, summary: str | None = None
    ) -> WebhookReply:
        """Start a workflow, unless an earlier delivery has started it; return the reply to the delivery."""
        try:
            await self.client.start_workflow(
                workflow,
                request,
                id=workflow_id,
                task_queue=self.task_queue,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                static_summary=summary,
            )
        except WorkflowAlreadyStartedError:
            return WebhookReply(accepted=False, why="This delivery was already received.")
        return WebhookReply(accepted=True, workflows=(workflow_id,))


def _age(created_at: str) -> timedelta:
    """Return the time since a timestamp; zero if the text is no timestamp."""
    try:
        written = datetime.fromisoformat(created_at)
    except ValueError:
        return timedelta()
    return datetime.now(UTC) - (written if written.tzinfo is not None else written.replace(tzinfo=UTC))
