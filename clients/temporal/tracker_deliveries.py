"""Pass a tracker's webhooks on to the workflows that act on them, without waiting for their results."""

from dataclasses import dataclass
from typing import Final

from temporalio.client import Client
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from clients.temporal.refusals import server_refusal
from septet.contracts.intake import WebhookReply
from septet.contracts.tracker import SessionPrompted, SessionStarted

_NOTHING: Final = WebhookReply(accepted=False, why="Septet does not act on this event.")
_KNOWN: Final = WebhookReply(accepted=False, why="This delivery was already received.")


@dataclass(frozen=True, slots=True)
class TrackerDeliveries:
    """The trackers' session events for one Temporal namespace.

    The ids of the workflows that they start contain the session's or the prompt's id, so that the server itself
    refuses a repeat within its retention; after that the issue's mark and the messages' ids prevent a repeat.
    """

    client: Client
    task_queue: str

    async def take(self, event: SessionStarted | SessionPrompted | None) -> WebhookReply:
        """Start the workflow that acts on an event, and return its id.

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
