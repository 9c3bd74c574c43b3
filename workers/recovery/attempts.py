"""What people say of activities that run. By itself the server tells of a cancel at the most, where it can push.

The answer to a heartbeat tells it, and each heartbeat is paid for. A description is not: it counts the state
transitions of a work order. Where it counts one that no heartbeat explains, the attempt asks.
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

from activities.host.attempts import RunningAttempt, RunningAttempts
from workers.beside import beside, repeat

LOOK_SECONDS: Final = 15.0
"""A pause and a reset have to reach an agent within 30 s."""


@asynccontextmanager
async def looking_after_attempts(client: Client, attempts: RunningAttempts) -> AsyncIterator[None]:
    """Look at what is said of the attempts of this process, every few seconds for as long as the block lasts."""
    look = AttemptsLook(client, attempts)

    async with beside(repeat(look.take, lambda: LOOK_SECONDS, "attempts_not_looked_at")):
        yield


@dataclass(frozen=True, slots=True)
class _Seen:
    """An activity as the server described it last."""

    transitions: int
    """Of its workflow, so far."""
    heartbeat: int
    """When its last heartbeat came, in nanoseconds by the server's clock."""

    def explains(self, later: "_Seen") -> bool:
        """Say whether nothing but a heartbeat has happened until a later look."""
        beats = 1 if later.heartbeat != self.heartbeat else 0
        return later.transitions - self.transitions <= beats


@dataclass(frozen=True, slots=True)
class AttemptsLook:
    """Compares what the server says of the attempts of one process with what it said before."""

    client: Client
    attempts: RunningAttempts
    rare_seconds: float = LOOK_SECONDS
    """An attempt that sends heartbeats as often as that learns by itself what is said."""
    _seen: dict[RunningAttempt, _Seen] = field(default_factory=dict)

    async def take(self) -> int:
        """Have those attempts ask the server of which something was said, and return how many there were.

        Raises:
            RPCError: The server cannot be asked now.
        """
        running = [each for each in self.attempts if each.pause.total_seconds() > self.rare_seconds]
        for ended in self._seen.keys() - set(running):
            del self._seen[ended]
        asking = [attempt for attempt in running if await self._is_news(attempt)]
        for attempt in asking:
            attempt.ask()
        return len(asking)

    async def _is_news(self, attempt: RunningAttempt) -> bool:
        """Say whether something was said of an attempt; of one that is new nobody knows."""
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
        """Return what the server knows of an attempt's workflow; `None` where it knows none."""
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
