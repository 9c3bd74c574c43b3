"""Run a work order's activities on the host of its workspace; if this host is gone, on another host.

A busy host is not gone. A host is gone if it was silent longer than its agents can live without a worker
(`SEPTET_ORPHAN_LIMIT_SECONDS`, see `gone_host`), or if a person reports it dead.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import SearchAttributeUpdate
from temporalio.exceptions import ActivityError, is_cancelled_exception

from septet.contracts.lanes import EnterLane
from septet.contracts.steps import FinalizeCall, StepCall, StepResult
from septet.contracts.workspace import DELIVERS_CANCELS, LIVENESS, CancelledWork, HostSilence, Workspace
from workflows.hosts.gone_host import (
    LONGEST_PAUSE,
    HostCall,
    HostNews,
    HostWait,
    KnownHosts,
    ProbedHostWait,
    Running,
)
from workflows.wire.activity_stubs import DELIVER_CANCEL
from workflows.wire.cancellation import forget, is_to_end, wait_despite_cancel
from workflows.wire.failures import AgentLeft
from workflows.wire.policies import deliver_options
from workflows.wire.search_attributes import HOST


class WatchedHostWait(HostWait):
    """Waits for an activity, and probes its host only after other hosts report that this host is silent."""

    async def is_left(self, running: Running, call: HostCall) -> bool:
        """Wait for the activity; return whether the workspace moved to another host first."""
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
        """Wait for the end of a cancelled activity, and return its result.

        Raises:
            AgentLeft: The host is silent.
        """
        await wait_despite_cancel(lambda: running.done() or self.hosts.is_silent)
        if running.done():
            return await running
        running.cancel()
        forget(running)
        raise AgentLeft

    async def leave(self, running: Running, host: str) -> None:
        """Cancel an activity on a host that the workspace left; unless the host is silent, wait for the end."""
        running.cancel()
        forget(running)
        await workflow.wait_condition(lambda: running.done() or host in self.hosts.silent_since)

    async def _ends_within(self, running: Running, pause: timedelta | None) -> bool:
        """Wait at most `pause` for the activity's end or news of its host; return whether the activity ended."""
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
        """Probe the host, and return whether it answers; an answer removes the report of the host's silence."""
        host = self.hosts.here.host
        if not await super()._answers():
            return False
        self.hosts.silent_since.pop(host, None)
        return True


AnyCall = TypeVar("AnyCall", StepCall, FinalizeCall, EnterLane)
AnyStepCall = TypeVar("AnyStepCall", StepCall, FinalizeCall)
Result = TypeVar("Result")


class HostWatch(KnownHosts):
    """Runs a work order's activities on the host of its workspace, and records reports about hosts."""

    def __init__(self, state: HostNews, show: Callable[[], None]) -> None:
        """Create the watch without a workspace; `show` publishes the work order's state for people."""
        super().__init__()
        self._show = show
        self._probed = ProbedHostWait(self, state, show)
        self._watched = WatchedHostWait(self, state, show)

    @property
    def attributes(self) -> Sequence[SearchAttributeUpdate[Any]]:
        """The search attribute by which other hosts find the work orders of a silent host."""
        return (HOST.value_set(self.here.host),) if self._is_watched else ()

    def holds(self, host: str) -> bool:
        """Return whether the workspace is on a host."""
        return self.workspace is not None and self.workspace.host == host

    def give_up(self, host: str) -> None:
        """Record a person's report that a host is dead."""
        self.dead = host

    def leave_lost_host(self, last_host: str) -> None:
        """After a reset, give up the present host unless it is `last_host`, where the previous run ended."""
        if self.workspace is not None and last_host and not self.holds(last_host):
            self.give_up(self.workspace.host)

    def note_silence(self, silence: HostSilence) -> None:
        """Record when a host fell silent; a time in the future counts as now."""
        since = min(silence.since, workflow.now())
        self.silent_since[silence.host] = max(since, self.silent_since.get(silence.host, since))

    def note_return(self, host: str) -> None:
        """Record that a host answers again."""
        self.silent_since.pop(host, None)
        self.is_back = self.is_back or self.holds(host)

    async def carry_out(self, call: AnyStepCall, start: Callable[[AnyStepCall], Running]) -> StepResult:
        """Run a step's activity on the workspace's host; if this host is gone, on another host.

        Raises:
            asyncio.CancelledError: The work order has to end, and the activity, if it was started, has ended.
        """
        warnings: list[str] = []
        result: StepResult = await self.follow(call, start, warnings)
        if not warnings:
            return result
        values = {"recovered_by": result.recovered_by or "rerun", "warnings": (*result.warnings, *warnings)}
        return result.model_copy(update=values)

    async def enter(
        self, call: EnterLane, start: Callable[[EnterLane], workflow.ActivityHandle[Workspace]]
    ) -> Workspace:
        """Enter a lane on its last host or, if this host is gone, on another host; return the lane's workspace.

        Raises:
            asyncio.CancelledError: The work order has to end.
        """
        if call.lane.workspace is None:
            return await start(call)
        order_id = call.opening.work_order_id
        self.workspace = call.lane.workspace.model_copy(update={"work_order_id": order_id, "visit": call.visit})
        if self._is_watched:
            self._show()
        return await self.follow(call, start, [])

    async def end_of(self, running: workflow.ActivityHandle[Result]) -> Result:
        """Wait for the end of a cancelled activity, and return its result.

        Raises:
            AgentLeft: The host is silent.
        """
        result: Result = await self._wait.end_of(running)
        return result

    async def follow(
        self, call: AnyCall, start: Callable[[AnyCall], workflow.ActivityHandle[Result]], warnings: list[str]
    ) -> Result:
        """Run an activity and return its result; a move to another host adds a warning to `warnings`."""
        if is_to_end():
            raise asyncio.CancelledError
        while True:
            call = place_call(call, self.here)
            running, wait, host = start(call), self._wait, self.here.host
            try:
                if not self.here.control_queue or not await wait.is_left(running, call):
                    return await running
            except (asyncio.CancelledError, ActivityError) as error:
                if running.done() or not is_cancelled_exception(error):
                    raise
                return await self._cancel(running)
            warnings.append(
                f"run again on host {self.here.host}: what an agent did on the lost host is paid for twice"
            )
            await wait.leave(running, host)

    @property
    def _is_watched(self) -> bool:
        """Whether other hosts report to this work order when its host falls silent."""
        return self.workspace is not None and LIVENESS in self.workspace.serves

    @property
    def _wait(self) -> HostWait:
        return self._watched if self._is_watched else self._probed

    async def _cancel(self, running: workflow.ActivityHandle[Result]) -> Result:
        """Cancel an activity, and return its result.

        If the server does not push cancels, another activity makes the running attempt notice the cancel at once.
        """
        running.cancel()
        if DELIVERS_CANCELS not in self.here.serves:
            return await self.end_of(running)
        delivery = DELIVER_CANCEL.start(
            CancelledWork(work_order_id=workflow.info().workflow_id),
            task_queue=self.here.control_queue,
            summary="the cancel, delivered",
            **deliver_options(),
        )
        forget(delivery)
        try:
            return await self.end_of(running)
        finally:
            delivery.cancel()


def place_call(call: AnyCall, workspace: Workspace) -> AnyCall:
    """Return the call with the given workspace."""
    if isinstance(call, FinalizeCall):
        return call.model_copy(update={"call": place_call(call.call, workspace)})
    if isinstance(call, EnterLane):
        return call.model_copy(update={"lane": call.lane.at(workspace)})
    return call.model_copy(update={"workspace": workspace})
