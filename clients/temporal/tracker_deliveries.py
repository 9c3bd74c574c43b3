"""What trackers tell by webhooks, given on to the workflows that act on it: nothing is waited for."""

from dataclasses import dataclass
from typing import Final

from temporalio.client import Client
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from clients.temporal.refusals import server_refusal
from septet.contracts.intake_replies import WebhookReply
from septet.contracts.tracker import SessionPrompted, SessionStarted

_NOTHING: Final = WebhookReply(accepted=False, why="Septet does not act on this event.")
_KNOWN: Final = WebhookReply(accepted=False, why="This delivery was already received.")


@dataclass(frozen=True, slots=True)
class TrackerDeliveries:
    """The events of sessions that one Temporal namespace is told of.

    The ids of the workflows that they start are the session's and the answer's own, so that the server itself
    refuses what comes again for as long as it remembers; after that the issue's mark and the messages' ids do.
    """

    client: Client
    task_queue: str

    async def take(self, event: SessionStarted | SessionPrompted | None) -> WebhookReply:
        """Start what acts on an event, and say what that is.

        Raises:
            ServerNotReachedError: The server refused; the tracker sends it again.
        """
        match event:
            case SessionStarted():
                name = "TrackerSession"
                workflow_id = f"session/{event.issue.tracker}/{event.issue.session}"
            case SessionPrompted():
                name, workflow_id = "TrackerPrompt", f"prompt/{event.issue.tracker}/{event.prompt_id}"
            case None:
                return _NOTHING
        try:
            await self.client.start_workflow(
                name,
                event,
                id=workflow_id,
                task_queue=self.task_queue,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                static_summary=event.issue.key,
            )
        except WorkflowAlreadyStartedError:
            return _KNOWN
        except RPCError as error:
            raise server_refusal(error) from error
        return WebhookReply(accepted=True, workflows=(workflow_id,))
