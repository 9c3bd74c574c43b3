"""Take over a gone worker's activities at once: the worker's successor on the host waits for no time-out.

When a worker's process ends, its tokens' locks are released. The successor fails the attempts of these tokens, and
Temporal starts the next attempts, which adopt the agents. The successor also fails the attempts of a process that
has been stopped for a few seconds; when that process continues, its attempts are superseded. A slow worker keeps
its attempts.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog
from temporalio.client import AsyncActivityCancelledError, AsyncActivityHandle, Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError, RPCStatusCode

from activities.host.cancellation import activity_handle, bound_to, was_reset
from septet.agents.runs.folders import Runs
from septet.agents.runs.records import RunKey
from septet.contracts.names import watched_order
from septet.janitor.terms import pipeline_of
from septet.system.lock_holder import LockHolders, read_lock_holders, stopped_holder
from workers.beside import beside, repeat
from workers.recovery.tokens import HeldToken, holding_left_token, read_token, tokens_in

LOOK_SECONDS: Final = 1.0
STOPPED_SECONDS: Final = 4.0
"""The seconds after which a stopped worker loses its attempts: a cancel must take effect within ten, and a
debugger's short stop must not count."""

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
"""The errors after which a server may accept the token a moment later."""

_log = structlog.get_logger()


@asynccontextmanager
async def taking_over(client: Client, folder: Path, runs: Runs) -> AsyncIterator[None]:
    """Take over left attempts once before the block, and repeatedly during it."""
    successor = Successor(client, folder, runs)
    await successor.look()
    async with beside(repeat(successor.look, lambda: LOOK_SECONDS, "tokens_not_looked_at")):
        yield


@dataclass(frozen=True, slots=True)
class Successor:
    """Takes over the attempts that other workers of this host have left."""

    client: Client
    folder: Path
    """The folder of the tokens."""
    runs: Runs
    stopped_seconds: float = STOPPED_SECONDS
    """The seconds that a worker may be stopped without losing its attempts."""
    _stopped: dict[Path, float] = field(default_factory=dict)
    """The time when the holder of each token was first seen stopped, by the monotonic clock."""

    async def look(self) -> int:
        """Fail the attempts of gone workers, and return their number.

        This removes a token that the server does not know, or that is another server's; if the server cannot
        accept a token now, the token stays for the next call.
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
        """Fail one attempt; if a person has reset the activity meanwhile, set its runs aside.

        Raises:
            RPCError: The server refused.
        """
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
        """Set an activity's runs aside, in the work order's own workspace or in its pipeline's lanes."""
        own = watched_order(key.workflow_id)
        for place_id in self.runs.orders():
            pipeline = pipeline_of(place_id)
            if place_id == own or (pipeline is not None and own.startswith(f"{pipeline}-")):
                self.runs.set_aside(place_id, key)

    def _is_stopped(self, path: Path, holders: LockHolders) -> bool:
        """Return whether the process that holds a token has been stopped for long."""
        if stopped_holder(path, holders) is None:
            self._stopped.pop(path, None)
            return False
        since = self._stopped.setdefault(path, time.monotonic())
        return time.monotonic() - since >= self.stopped_seconds
