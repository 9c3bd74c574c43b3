"""Find news of running activities, for example a pause or a reset. The server itself pushes at most a cancel.

The answer to a heartbeat reports the news, but each heartbeat costs. A description of a workflow costs nothing,
and counts the workflow's state transitions. If a transition is not explained by a heartbeat, the attempt sends a
heartbeat.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.host.running_attempts import RunningAttempt, RunningAttempts
from workers.beside import beside, repeat

LOOK_SECONDS: Final = 15.0
"""The seconds between checks: a pause or a reset must reach an agent within 30 s."""


@asynccontextmanager
async def looking_after_attempts(client: Client, attempts: RunningAttempts) -> AsyncIterator[None]:
    """Check for news of this process's attempts every few seconds during the block."""
    look = AttemptsLook(client, attempts)

    async with beside(repeat(look.take, lambda: LOOK_SECONDS, "attempts_not_looked_at")):
        yield


@dataclass(frozen=True, slots=True)
class _Seen:
    """The server's last description of an activity."""

    transitions: int
    """The number of state transitions of the activity's workflow."""
    heartbeat: int
    """The time of the activity's last heartbeat, in nanoseconds by the server's clock."""

    def explains(self, later: "_Seen") -> bool:
        """Return whether a heartbeat alone explains a later description."""
        beats = 1 if later.heartbeat != self.heartbeat else 0
        return later.transitions - self.transitions <= beats


@dataclass(frozen=True, slots=True)
class AttemptsLook:
    """Compares the server's descriptions of one process's attempts with the previous descriptions."""

    client: Client
    attempts: RunningAttempts
    rare_seconds: float = LOOK_SECONDS
    """The longest pause between heartbeats, in seconds, with which an attempt is not checked: its own heartbeats
    suffice."""
    _seen: dict[RunningAttempt, _Seen] = field(default_factory=dict)

    async def take(self) -> int:
        """Make the attempts with news send a heartbeat, and return their number.

        Raises:
            RPCError: The server does not answer now.
        """
        running = [each for each in self.attempts if each.pause.total_seconds() > self.rare_seconds]
        for ended in self._seen.keys() - set(running):
            del self._seen[ended]
        asking = [attempt for attempt in running if await self._is_news(attempt)]
        for attempt in asking:
            attempt.ask()
        return len(asking)

    async def _is_news(self, attempt: RunningAttempt) -> bool:
        """Return whether the server may have news for an attempt; `True` at an attempt's first check."""
        described = await self._describe(attempt)
        pending = _pending(described, attempt.key.activity_id) if described is not None else None
        if described is None or pending is None:
            return True
        before = self._seen.get(attempt)
        seen = _Seen(
            described.workflow_execution_info.state_transition_count, pending.last_heartbeat_time.ToNanoseconds()
        )
        self._seen[attempt] = seen
        started = pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
        return not started or before is None or not before.explains(seen)

    async def _describe(self, attempt: RunningAttempt) -> DescribeWorkflowExecutionResponse | None:
        """Return the server's description of an attempt's workflow; `None` for an unknown workflow."""
        execution = WorkflowExecution(workflow_id=attempt.key.workflow_id, run_id=attempt.key.run_id)
        request = DescribeWorkflowExecutionRequest(namespace=self.client.namespace, execution=execution)
        try:
            return await self.client.workflow_service.describe_workflow_execution(request)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise


def _pending(description: DescribeWorkflowExecutionResponse, activity_id: str) -> PendingActivityInfo | None:
    return next((each for each in description.pending_activities if each.activity_id == activity_id), None)
