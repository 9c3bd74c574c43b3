"""The gate before every effect: what a superseded or cancelled attempt would still write does not happen."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TypeVar

from temporalio import activity

from septet.agents.runs.folders import RunKey, Runs
from septet.agents.runs.lease import Lease
from septet.system.processes import Halt

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fence:
    """Open while the attempt is the last one and is not cancelled."""

    lease: Lease
    _halt: Halt = field(default_factory=Halt)

    def check(self) -> None:
        """See that the gate is open, right before a commit, a push or a pull request.

        Raises:
            HaltedError: The attempt was cancelled.
            SupersededError: A later attempt has begun.
        """
        self._halt.check()
        self.lease.check()

    def halting(self) -> AbstractContextManager[None]:
        """Let the processes that the block starts end with a cancel: nobody waits for a push that hangs."""
        return self._halt.over()

    async def as_writer(self, work: Callable[[], T]) -> T:
        """Run blocking work in a thread with the writer's lock in hand; a cancel halts it, and waits for its end.

        Raises:
            SupersededError: A later attempt has begun.
            WorkspaceBusyError: Somebody else holds the lock.
        """

        def with_lock() -> T:
            with self.lease.held():
                return work()

        running = asyncio.ensure_future(asyncio.to_thread(with_lock))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            self._halt.now()
            await asyncio.gather(running, return_exceptions=True)
            raise


def own_key() -> RunKey:
    """Return the key of the activity that is running: only the same key adopts what it started."""
    info = activity.info()
    return RunKey(info.workflow_id or "", info.workflow_run_id or "", info.activity_id)


def own_lease(runs: Runs, place_id: str = "", visit: str = "") -> Lease:
    """Write the running attempt down and return its lease.

    Args:
        runs: The runs of this host.
        place_id: The lane in which it works; the work order's own workspace when absent.
        visit: Which of the work order's stays in that lane.

    Raises:
        SupersededError: A later attempt has begun already.
    """
    info = activity.info()
    return Lease.take(
        runs,
        own_key(),
        place_id=place_id,
        visit=visit,
        number=info.attempt,
        started_at=info.started_time.timestamp(),
    )
