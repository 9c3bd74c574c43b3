"""Take over the attempts of a dead worker at once, and make running attempts notice a pause or a reset.

Each running activity has a token in a locked file. When a worker's process ends, the kernel releases the locks.
Another worker of the host then fails the attempts with these tokens, and Temporal starts new attempts, which adopt
the agents. A process that was stopped for a few seconds loses its attempts too. A slow worker keeps them.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse
from temporalio.client import AsyncActivityCancelledError, AsyncActivityHandle, Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError, RPCStatusCode

from activities.host.cancellation import activity_handle, bound_to, was_reset
from activities.host.running_attempts import RunningAttempt, RunningAttempts
from septet.agents.runs.folders import Runs
from septet.agents.runs.records import RunKey
from septet.contracts.names import watched_order
from septet.janitor.terms import pipeline_of
from septet.system.lock_holder import LockHolders, read_lock_holders, stopped_holder
from workers.beside import repeating
from workers.recovery.tokens import HeldToken, holding_left_token, read_token, tokens_in

LOOK_SECONDS: Final = 1.0
STOPPED_SECONDS: Final = 4.0
"""How many seconds a process may be stopped before it loses its attempts: long enough for a debugger, and short
enough for a cancel to take effect within ten seconds."""

_PASSING: Final = frozenset(
    {
        RPCStatusCode.CANCELLED,
        RPCStatusCode.UNKNOWN,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.RESOURCE_EXHAUSTED,
        RPCStatusCode.ABORTED,
        RPCStatusCode.INTERNAL,
        RPCStatusCode.UNAVAILABLE,
    }
)
"""The errors after which the server may accept the same token a moment later."""

_log = structlog.get_logger()


@asynccontextmanager
async def taking_over(client: Client, folder: Path, runs: Runs) -> AsyncIterator[None]:
    """Take over the attempts of dead workers, once before the block and repeatedly while it runs."""
    successor = Successor(client, folder, runs)
    await successor.look()
    async with repeating(successor.look, LOOK_SECONDS, "tokens_not_looked_at"):
        yield


@dataclass(frozen=True, slots=True)
class Successor:
    """Takes over the attempts of dead and stopped workers of this host."""

    client: Client
    folder: Path
    runs: Runs
    stopped_seconds: float = STOPPED_SECONDS
    """How many seconds a worker's process may be stopped before it loses its attempts."""
    _stopped: dict[Path, float] = field(default_factory=dict)
    """For each token's file, since when its process is known to be stopped, by the monotonic clock."""

    async def look(self) -> int:
        """Fail the attempts of dead and stopped workers, and return their number.

        A token that the server does not know is deleted. If the server cannot accept a token now, the token stays
        for the next call.
        """
        taken, holders = 0, read_lock_holders()
        for path in tokens_in(self.folder):
            with holding_left_token(path) as left:
                held = left or (read_token(path) if self._is_stopped(path, holders) else None)
                if held is None:
                    continue
                try:
                    await self._take(held)
                    taken += 1
                except RPCError as refusal:
                    _log.info("token_not_taken", token=path.name, error=refusal.message)
                    if refusal.status in _PASSING:
                        break
                path.unlink(missing_ok=True)
        return taken

    async def _take(self, held_token: HeldToken) -> None:
        """Fail one attempt; if a person has reset its activity, let later attempts ignore earlier agent runs."""
        handle: AsyncActivityHandle = self.client.get_async_activity_handle(task_token=held_token.token)
        reset = False
        try:
            await handle.heartbeat()
        except AsyncActivityCancelledError as cancelled:
            reset = cancelled.details is not None and cancelled.details.reset
        except RPCError as error:
            unknown = error.status is RPCStatusCode.NOT_FOUND
            if not (
                unknown and await was_reset(self.client, held_token.key, held_token.attempt, held_token.started_at)
            ):
                raise
            reset, handle = True, activity_handle(self.client, held_token.key)
        if reset:
            await asyncio.to_thread(self._set_aside, held_token.key)
        await bound_to(held_token.key, handle, self.client).fail(
            ApplicationError(
                "The worker that ran it ended, or was stopped.",
                type="WorkerGone",
                category=ApplicationErrorCategory.BENIGN,
            )
        )
        _log.info(
            "taken_over",
            work_order_id=held_token.key.workflow_id,
            activity=held_token.key.activity_id,
            reset=reset,
        )

    def _set_aside(self, key: RunKey) -> None:
        """Let later attempts ignore the activity's runs in the work order's workspace or its pipeline's lanes."""
        own = watched_order(key.workflow_id)
        for place_id in self.runs.orders():
            pipeline = pipeline_of(place_id)
            if place_id == own or (pipeline is not None and own.startswith(f"{pipeline}-")):
                self.runs.set_aside(place_id, key)

    def _is_stopped(self, path: Path, holders: LockHolders) -> bool:
        """Return whether the process with a token's lock has been stopped for too long."""
        if stopped_holder(path, holders) is None:
            self._stopped.pop(path, None)
            return False
        since = self._stopped.setdefault(path, time.monotonic())
        return time.monotonic() - since >= self.stopped_seconds


NEWS_SECONDS: Final = 15.0
"""The seconds between checks for a pause or a reset; both must reach an agent within 30 s."""


def looking_after_attempts(client: Client, attempts: RunningAttempts) -> AbstractAsyncContextManager[None]:
    """While the block runs, check every few seconds whether an attempt of this process was paused or reset."""
    return repeating(AttemptsLook(client, attempts).take, NEWS_SECONDS, "attempts_not_looked_at")


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the server said about an activity at the previous check."""

    transitions: int
    heartbeat: int
    """The time of the activity's last heartbeat, in nanoseconds by the server's clock."""

    def explains(self, later: "_Seen") -> bool:
        beats = 1 if later.heartbeat != self.heartbeat else 0
        return later.transitions - self.transitions <= beats


@dataclass(frozen=True, slots=True)
class AttemptsLook:
    """Finds attempts of this process that may have been paused or reset, and makes them send a heartbeat.

    The server reports a pause or a reset only in the answer to a heartbeat, which costs money. A workflow's
    description is free, and has the number of the workflow's state changes. An attempt sends a heartbeat if this
    number has grown, and the attempt's own heartbeats do not explain the growth.
    """

    client: Client
    attempts: RunningAttempts
    rare_seconds: float = NEWS_SECONDS
    """An attempt whose pauses between heartbeats are at most this long is not checked: its heartbeats suffice."""
    _seen: dict[RunningAttempt, _Seen] = field(default_factory=dict)

    async def take(self) -> int:
        """Make each attempt that may have been paused or reset send a heartbeat; return how many did.

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
        """Return whether an attempt may have been paused or reset; `True` at its first check."""
        described = await self._describe(attempt)
        activities = described.pending_activities if described is not None else ()
        pending = next((each for each in activities if each.activity_id == attempt.key.activity_id), None)
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
        """Return the server's description of the attempt's workflow; `None` if the server does not know it."""
        execution = WorkflowExecution(workflow_id=attempt.key.workflow_id, run_id=attempt.key.run_id)
        request = DescribeWorkflowExecutionRequest(namespace=self.client.namespace, execution=execution)
        try:
            return await self.client.workflow_service.describe_workflow_execution(request)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise
