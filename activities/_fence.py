"""The fence before every effect: what a superseded or cancelled attempt would still write does not happen."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from temporalio import activity

from septet.agents.runs.folders import RunKey, Runs
from septet.agents.runs.lease import Lease
from septet.system.processes import Halt


@dataclass(frozen=True, slots=True)
class Fence:
    """Open while the attempt is the last one and is not cancelled."""

    lease: Lease
    _halt: Halt = field(default_factory=Halt)

    def check(self) -> None:
        """See that the fence is open, right before a commit, a push or a pull request.

        Raises:
            HaltedError: The attempt was cancelled.
            SupersededError: A later attempt has begun.
        """
        self._halt.check()
        self.lease.check()

    def stop(self) -> None:
        """Close the fence for a cancel: end the processes that wait for it, and let none begin."""
        self._halt.now()

    def halting(self) -> AbstractContextManager[None]:
        """Let the processes that the block starts end with a cancel: nobody waits for a push that hangs."""
        return self._halt.over()


def own_key() -> RunKey:
    """Return the key of the activity that is running: only the same key adopts what it started."""
    info = activity.info()
    return RunKey(info.workflow_id or "", info.workflow_run_id or "", info.activity_id)


def take_fence(runs: Runs, place_id: str, visit: str) -> Fence:
    """Write the running attempt down, and return the fence that is open as long as it is the last one.

    Args:
        runs: The runs of this host.
        place_id: The lane in which it works; the work order's own workspace when absent.
        visit: Which of the work order's visits to that lane.

    Raises:
        SupersededError: A later attempt has begun already.
    """
    info = activity.info()
    lease = Lease.take(
        runs,
        own_key(),
        place_id=place_id,
        visit=visit,
        number=info.attempt,
        started_at=info.started_time.timestamp(),
    )
    return Fence(lease)
