"""A host that others watch: a work order waits without a timer until it is notified of silence or return."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

from temporalio import workflow

from workflows.hosts.host_wait import LONGEST_PAUSE, HostCall, HostWait, Running
from workflows.wire.cancellation import forget, wait_despite_cancel
from workflows.wire.failures import AgentLeft


class WatchedHostWait(HostWait):
    """Silent is what others have not heard of; gone is what then stays so for as long as its agents may live."""

    async def is_left(self, running: Running, call: HostCall) -> bool:
        """Wait until the activity has ended, or its workspace has moved: then a late result does not count."""
        first = timedelta(seconds=self.hosts.here.probe_seconds)
        pause: timedelta | None = None
        pause_when_gone = first
        while not await self._ends_within(running, pause):
            host, is_dead = self.hosts.here.host, self.hosts.take_words()
            if not is_dead and await self._answers():
                pause, pause_when_gone = None, first
                continue
            since = self.hosts.silent_since.get(host, workflow.now())
            left = since + self._patience(call) - workflow.now()
            if not is_dead and left > timedelta(0):
                self.hosts.silent_since[host] = since
                pause = left
                self._tell_silence(since, workflow.now() + left)
            elif await self._move(call, since):
                return True
            else:
                pause, pause_when_gone = pause_when_gone, min(2 * pause_when_gone, LONGEST_PAUSE)
        self._end_wait()
        return False

    async def end_of(self, running: Running) -> Any:  # noqa: ANN401 -- what the activity returns
        """Wait for the end of an activity of cancelled work, and return what it came to.

        Raises:
            AgentLeft: The host is silent, and nobody waits for it.
        """
        await wait_despite_cancel(lambda: running.done() or self.hosts.is_silent)
        if running.done():
            return await running
        running.cancel()
        forget(running)
        raise AgentLeft

    async def leave(self, running: Running, host: str) -> None:
        """Cancel an activity whose workspace has moved, and wait for its end where the host is not silent."""
        running.cancel()
        forget(running)
        await workflow.wait_condition(lambda: running.done() or host in self.hosts.silent_since)

    async def _ends_within(self, running: Running, pause: timedelta | None) -> bool:
        """Wait for the activity's end, a person's word, or news of the host; of a silent one only for so long."""
        was_silent = self.hosts.is_silent and pause is not None
        self.hosts.is_back = self.hosts.is_back and pause is not None
        with suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: (
                    running.done()
                    or self.hosts.is_nudged
                    or self.hosts.is_dead
                    or (self.hosts.is_back and pause is not None)
                    or self.hosts.is_silent is not was_silent
                ),
                timeout=pause,
                timeout_summary="is the host still silent?",
            )
        return running.done()

    async def _answers(self) -> bool:
        """Ask the host whether it is there; one that is has not been silent."""
        host = self.hosts.here.host
        if not await super()._answers():
            return False
        self.hosts.silent_since.pop(host, None)
        return True
