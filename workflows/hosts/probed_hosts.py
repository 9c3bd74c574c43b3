"""The wait of a work order that probes its host by itself: the probes are rare, and each needs a timer.

Work orders wait in this way if no watcher reports their host: the server does not list workers, or the host runs
an older release.
"""

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow

from workflows.hosts.host_wait import LONGEST_PAUSE, RAREST, HostCall, HostWait, Running
from workflows.wire.cancellation import cancel_and_wait


class ProbedHostWait(HostWait):
    """Waits by probes; a silent host is gone once its agents can no longer live unseen, or if a person says so."""

    async def is_left(self, running: Running, call: HostCall) -> bool:
        """Return whether the workspace moved before the activity ended; a late result then does not count."""
        first = pause = timedelta(seconds=self.hosts.here.probe_seconds)
        silent_since: datetime | None = None
        while not await self._ends_within(running, pause):
            is_dead = self.hosts.take_words()
            if not is_dead and await self._answers():
                pause = min(2 * pause, RAREST * first) if silent_since is None else first
                silent_since = None
                continue
            silent_since = silent_since or workflow.now()
            if not is_dead and workflow.now() - silent_since < self._patience(call):
                pause = first
            elif await self._move(call, silent_since):
                return True
            else:
                pause = min(2 * pause, LONGEST_PAUSE)
        self._end_wait()
        return False

    async def end_of(self, running: Running) -> Any:  # noqa: ANN401 -- what the activity returns
        """Wait without limit for the end of a cancelled activity, and return its result."""
        return await running

    async def leave(self, running: Running, host: str) -> None:  # noqa: ARG002 -- no watcher reports its silence
        """Cancel an activity whose workspace has moved, and wait for its end."""
        await cancel_and_wait(running)

    async def _ends_within(self, running: Running, pause: timedelta) -> bool:
        """Wait for the activity's end, a person's report or the pause; return whether the activity ended."""
        with suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: running.done() or self.hosts.is_nudged or self.hosts.is_dead,
                timeout=pause,
                timeout_summary="is the host there?",
            )
        return running.done()
