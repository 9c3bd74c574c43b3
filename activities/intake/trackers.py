"""The activities of one host in a tracker: claim issues, write in conversations (*sessions*), obey replies."""

from dataclasses import dataclass
from typing import Final

from temporalio import activity
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.host.cancellation import cancellable_thread
from activities.host.host import Host
from activities.intake.comment_commands import Decide, decide_nothing
from activities.intake.issues import take_issue
from septet.contracts.forge_events import CommentCommand
from septet.contracts.tracker import MessageKind, SessionMessage, SessionPrompted, TakeTrackedIssue, TrackedClaim
from septet.errors import SeptetError, TrackerUnavailableError
from septet.system.text import cut
from septet.trackers.choose import tracker_for
from septet.trackers.words import cancelled_message, parse_reply, what_is_missing

_LOOKS: Final = 6
"""The most attempts to find the work order that an issue names, because the work order may be just starting."""


@dataclass(frozen=True, slots=True)
class TrackerActivities:
    """Claims issues, writes in conversations (*sessions*) and obeys people's replies, with one host's keys."""

    host: Host
    decide: Decide = decide_nothing

    @activity.defn(name="tell_session")
    async def tell_session(self, message: SessionMessage) -> None:
        """Write a message as one entry of a conversation. Idempotent: the message's key finds the entry again.

        Raises:
            ApplicationError: The tracker did not answer, or refused.
        """
        async with self.host.working():
            tracker = tracker_for(message.issue.tracker, self.host.settings)
            await cancellable_thread(self.host.threads.network, tracker.say, message)

    @activity.defn(name="take_tracked_issue")
    async def take_tracked_issue(self, request: TakeTrackedIssue) -> TrackedClaim:
        """Claim an issue for a workflow, unless the issue was claimed before.

        Idempotent: a workflow keeps its claim when it claims again. Writes an attachment on the issue, with
        the work order's id. If settings forbid the issue, this returns the reason and writes nothing.

        Raises:
            ApplicationError: The tracker did not answer, or refused.
        """
        async with self.host.working():
            return await cancellable_thread(self.host.threads.network, take_issue, self.host, request)

    @activity.defn(name="obey_prompt")
    async def obey_prompt(self, prompt: SessionPrompted) -> SessionMessage:
        """Carry out a person's message in a conversation on a tracker, and return Septet's reply.

        Idempotent: a decision of an earlier attempt is not repeated.

        Raises:
            ApplicationError: The tracker, the server or a worker did not answer.
        """
        async with self.host.working():
            command = CommentCommand(verb="cancel") if prompt.is_stop else parse_reply(prompt.body)
            if refusal := what_is_missing(command):
                return _answer(prompt, refusal, kind="elicitation")
            tracker = tracker_for(prompt.issue.tracker, self.host.settings)
            mark = await cancellable_thread(self.host.threads.network, tracker.find_mark, prompt.issue.id)
            if mark is None:
                kind: MessageKind = "response" if prompt.is_stop else "error"
                return _answer(prompt, "No work order has this issue.", kind=kind)
            await _expect_order(activity.client(), mark.order_id)
            who = f"{prompt.author} on {prompt.issue.tracker}"
            try:
                task = await self.decide(activity.client(), mark.order_id, command, who)
            except SeptetError as error:
                if error.retryable:
                    raise
                words = " ".join(part for part in (f"`{mark.order_id}`: {error.message}", error.remedy) if part)
                asks_again = command.verb in {"approve", "reject"}
                return _answer(prompt, words, kind="elicitation" if asks_again else "thought")
            if command.verb == "cancel":
                return cancelled_message(prompt.issue, mark.order_id)
            return _answer(prompt, f"`{mark.order_id}` is {task.status.value} now.", kind="thought")


def _answer(prompt: SessionPrompted, text: str, *, kind: MessageKind) -> SessionMessage:
    return SessionMessage(issue=prompt.issue, key=f"answer/{prompt.prompt_id}", kind=kind, text=cut(text, 2000))


async def _expect_order(client: Client, order_id: str) -> None:
    """Raise if the server does not know the work order that an issue's mark names."""
    try:
        await client.get_workflow_handle(order_id).describe()
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        if activity.info().attempt < _LOOKS:
            raise TrackerUnavailableError(f"{order_id} has not started yet.", retry_after_seconds=1) from error
