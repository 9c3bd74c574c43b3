"""The fence before every effect: what a superseded or cancelled attempt would still write does not happen."""

from dataclasses import dataclass, field

from temporalio import activity

from septet.agents.runs.folders import Runs
from septet.agents.runs.lease import Lease
from septet.agents.runs.records import RunKey
from septet.system.processes import Halt


@dataclass(frozen=True, slots=True)
class Fence:
    """Open while the attempt is the last one and is not cancelled."""

    key: RunKey
    """The activity that is running: only the same key adopts what it started."""
    lease: Lease
    halt: Halt = field(default_factory=Halt)
    """Ends what waits for a push or a check when the attempt is cancelled: nobody waits for one that hangs."""

    def check(self) -> None:
        """See that the fence is open, right before a commit, a push or a pull request.

        Raises:
            HaltedError: The attempt was cancelled.
            SupersededError: A later attempt has begun.
        """
        self.halt.check()
        self.lease.check()


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
    key = RunKey(info.workflow_id or "", info.workflow_run_id or "", info.activity_id)
    lease = Lease.take(
        runs,
        key,
        lane=(place_id, visit),
        number=info.attempt,
        started_at=info.started_time.timestamp(),
    )
    return Fence(key, lease)
