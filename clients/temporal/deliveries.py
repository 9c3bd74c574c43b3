"""What forges tell by webhooks, given on to the workflows that act on it: nothing is waited for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from temporalio.client import Client
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from clients.temporal.intakes import IntakeClient
from clients.temporal.refusals import server_refusal
from septet.contracts.forge_events import ForgeEvent, IssueChanged
from septet.contracts.intake import IntakePass
from septet.contracts.intake_replies import WebhookReply
from septet.contracts.wire import Wire
from septet.git.address import parse_address

_NOTHING: Final = WebhookReply(accepted=False, why="It tells of nothing that Septet acts on.")
_NO_INTAKE: Final = WebhookReply(
    accepted=False, why="No intake takes issues with these labels of this repository."
)
_KNOWN: Final = WebhookReply(accepted=False, why="It came before.")


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
            if isinstance(event, IssueChanged):
                return await self._take_issue(event, digest)
        except RPCError as error:
            raise server_refusal(error) from error
        return _NOTHING

    async def _take_issue(self, event: IssueChanged, digest: str) -> WebhookReply:
        key = parse_address(event.repository, home=Path.home()).key
        intakes = await IntakeClient(self.client, self.task_queue).of_repository(key)
        wanted = [each for each in intakes if each.label in event.labels and event.state == "open"]
        if not wanted:
            return _NO_INTAKE
        request = IntakePass(intake=wanted[0], issue=event.number)
        return await self._start("Intake", request, f"intake/{event.forge}/{digest}")

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
