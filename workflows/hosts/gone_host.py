"""Wait for an activity on a host, and move the workspace to another host if that host is gone."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from septet.contracts.lanes import EnterLane
from septet.contracts.order import Timeouts
from septet.contracts.steps import FinalizeCall, StepCall
from septet.contracts.task import TaskError
from septet.contracts.workspace import MoveWorkspace, Workspace
from septet.system.text import timestamp
from workflows.wire.activity_stubs import MOVE_WORKSPACE, PROBE_HOST
from workflows.wire.cancellation import cancel_and_wait
from workflows.wire.failures import explain_failure
from workflows.wire.policies import WORKSPACE_OPTIONS, probe_options

RAREST: Final = 10
"""The longest pause between probes of a host that answers, as a multiple of the first pause."""
LONGEST_PAUSE: Final = timedelta(days=1)
"""The longest pause between probes of a gone host; each pause is twice the last, so that histories stay short. If
the host returns, its worker runs waiting activities at once."""

_WAIT: Final = (
    "Start a worker on its state directory: the work order continues by itself as soon as the host answers."
)
_NOW: Final = (
    "If you know that it is gone, continue elsewhere now: `septet host-gone {host}`. The work of its agent "
    "since the last checkpoint is then paid for twice."
)
_OR_WAIT: Final = (
    "Or start a worker on the state directory of host {host}: "
    "the work order continues by itself as soon as that host answers."
)

HostCall = StepCall | FinalizeCall | EnterLane
Running = workflow.ActivityHandle[Any]


@dataclass
class KnownHosts:
    """A work order's workspace, and what the work order knows about hosts."""

    workspace: Workspace | None = None
    dead: str = ""
    is_nudged: bool = False
    """Whether a person wants the host probed now, even during a long pause."""
    is_back: bool = False
    """Whether the host's return was reported but not yet handled; a report of silence may follow at once."""
    silent_since: dict[str, datetime] = field(default_factory=dict)
    unanswered_since: dict[str, datetime] = field(default_factory=dict)
    """When each host fell silent, for the messages to people; decisions do not use this."""

    @property
    def here(self) -> Workspace:
        """The workspace, on its present host."""
        if self.workspace is None:
            message = "the workspace is not open yet"
            raise RuntimeError(message)
        return self.workspace

    @property
    def is_dead(self) -> bool:
        """Whether a person has reported that the workspace's host is dead."""
        return self.dead == self.here.host

    @property
    def is_silent(self) -> bool:
        """Whether the workspace's host is silent, as far as the work order knows."""
        return self.workspace is not None and self.workspace.host in self.silent_since

    def take_words(self) -> bool:
        """Clear the reports of people; return whether a person had reported the host dead."""
        is_dead, self.dead, self.is_nudged, self.is_back = self.is_dead, "", False, False
        return is_dead


class HostNews(Protocol):
    """Records what happens to the host of a work order, or of a round on its pull request."""

    def wait_for_host(self, error: TaskError, now: datetime) -> bool:
        """Record a wait for a gone host, with `error` as the reason; return whether this changes the record."""

    def end_wait_for_host(self, now: datetime) -> bool:
        """Record the end of a wait for a host; return whether such a wait was recorded."""

    def move_to_host(self, lost_host: str, host: str, now: datetime) -> bool:
        """Record that the work continues on another host; return whether this changes the record."""


class HostWait(ABC):
    """Waits for activities on a host that may be gone; one object serves one work order."""

    def __init__(self, hosts: KnownHosts, state: HostNews, show: Callable[[], None]) -> None:
        """Use a work order's known hosts; record news in `state`; `show` publishes the work order's state."""
        self.hosts = hosts
        self._state = state
        self._show = show

    @abstractmethod
    async def is_left(self, running: Running, call: HostCall) -> bool:
        """Wait for the activity; return whether the workspace moved to another host first."""

    @abstractmethod
    async def end_of(self, running: Running) -> Any:  # noqa: ANN401 -- what the activity returns
        """Wait for the end of a cancelled activity, and return its result.

        Raises:
            AgentLeft: The host is silent.
        """

    @abstractmethod
    async def leave(self, running: Running, host: str) -> None:
        """Cancel an activity on a host that the workspace has left."""

    async def _answers(self) -> bool:
        """Probe the host, and return whether it answers; an answer ends the recorded wait for the host."""
        here = self.hosts.here
        try:
            await PROBE_HOST.start(
                None,
                task_queue=here.control_queue,
                summary=f"is host {here.host} there?",
                **probe_options(here.probe_seconds),
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            return False
        self._end_wait()
        return True

    def _end_wait(self) -> None:
        self.hosts.unanswered_since.pop(self.hosts.here.host, None)
        self._show_if(self._state.end_wait_for_host(workflow.now()))

    def _patience(self, call: HostCall) -> timedelta:
        """Return how long an agent can still live on a host that is silent."""
        limits = call.call.limits if isinstance(call, FinalizeCall) else Timeouts()
        limits = call.limits if isinstance(call, StepCall) else limits
        return timedelta(seconds=self.hosts.here.orphan_limit_seconds + limits.heartbeat_seconds)

    async def _move(self, call: HostCall, silent_since: datetime) -> bool:
        """Open the workspace on another host; if that fails, record the reason and return `False`."""
        left = self.hosts.here
        since = self._times_of_silence(left.host, silent_since)
        silence = f"Host {left.host}, which has the workspace, has not answered since {since}"
        if not left.kept:
            self._block(f"{silence}; it keeps no checkpoints elsewhere.", _WAIT)
            return False
        try:
            self.hosts.workspace = await self._open_elsewhere(call)
        except ActivityError as failed:
            if is_cancelled_exception(failed):
                raise
            why, _ = explain_failure(failed)
            self._block(
                f"{silence}, and no other host could continue: {why.message}",
                f"{why.remedy} {_OR_WAIT.format(host=left.host)}" if why.remedy else _WAIT,
            )
            return False
        host = self.hosts.here.host
        if host == left.host:
            return False
        self.hosts.unanswered_since.pop(left.host, None)
        self._show_if(self._state.move_to_host(left.host, host, workflow.now()))
        return True

    def _tell_silence(self, since: datetime, gone_at: datetime) -> None:
        here = self.hosts.here
        silence = f"Host {here.host}, which has the workspace, has been silent since {since:%H:%M} UTC"
        goes_on, remedy = "it keeps no checkpoints elsewhere", _WAIT
        if here.kept:
            goes_on = f"the work order continues on another host at {gone_at:%H:%M} UTC"
            remedy = _NOW.format(host=here.host)
        self._block(f"{silence}; {goes_on}.", remedy, is_gone=False)

    def _times_of_silence(self, host: str, silent_since: datetime) -> str:
        """Return when a host fell silent, and when it was last reported silent if that is later.

        The later time makes repeated messages differ, as histories of earlier releases expect.
        """
        known = self.hosts.unanswered_since
        known[host] = min(silent_since, known.get(host, silent_since))
        first, last = timestamp(known[host]), timestamp(silent_since)
        return first if first == last else f"{first} (still silent at {last})"

    async def _open_elsewhere(self, call: HostCall) -> Workspace:
        """Open the workspace on another host and return it; a lane not yet entered may open on any host."""
        left = self.hosts.here
        if isinstance(call, EnterLane) and left.lane != call.lane.id:
            return left.model_copy(
                update={"host": "that opens it", "task_queue": "", "control_queue": "", "serves": ()}
            )
        return await MOVE_WORKSPACE.start(
            MoveWorkspace(workspace=left, checkpoint=checkpoint_of(call)),
            summary=f"host {left.host} is gone: its workspace opens elsewhere",
            **WORKSPACE_OPTIONS,
        )

    def _block(self, message: str, remedy: str, *, is_gone: bool = True) -> None:
        error = TaskError(type="HostGone" if is_gone else "HostSilent", message=message, remedy=remedy)
        self._show_if(self._state.wait_for_host(error, workflow.now()))

    def _show_if(self, is_news: bool) -> None:
        if is_news:
            self._show()


def checkpoint_of(call: HostCall) -> str:
    """Return the snapshot from which an activity continues; empty for a call that enters a lane."""
    if isinstance(call, FinalizeCall):
        return call.result.checkpoint or call.call.starts_from
    return call.starts_from if isinstance(call, StepCall) else ""


class ProbedHostWait(HostWait):
    """Probes the host; a silent host is gone when its agents can no longer live or a person reports it dead.

    This serves hosts whose silence no other host reports, because the server does not list workers or the host
    runs an older release. Each probe needs a timer, so probes are rare.
    """

    async def is_left(self, running: Running, call: HostCall) -> bool:
        """Wait for the activity; return whether the workspace moved to another host first."""
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
        """Cancel an activity on a host that the workspace has left, and wait for its end."""
        await cancel_and_wait(running)

    async def _ends_within(self, running: Running, pause: timedelta) -> bool:
        """Wait for the activity's end, a person's report or the pause's end; return whether the activity ended."""
        with suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: running.done() or self.hosts.is_nudged or self.hosts.is_dead,
                timeout=pause,
                timeout_summary="is the host there?",
            )
        return running.done()
