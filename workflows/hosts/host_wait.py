"""The wait for an activity on a host: what is known of the host, and the move of the workspace when it is gone."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from septet.contracts.lanes import EnterLane
from septet.contracts.limits import Timeouts
from septet.contracts.steps import FinalizeCall, StepCall
from septet.contracts.task import TaskError
from septet.contracts.workspace import MoveWorkspace, Workspace
from septet.system.timestamps import timestamp
from workflows.wire.activity_stubs import MOVE_WORKSPACE, PROBE_HOST
from workflows.wire.failures import explain_failure
from workflows.wire.policies import WORKSPACE_OPTIONS, probe_options

RAREST: Final = 10
"""A host that answers is asked ever more rarely, up to so many times the first pause: a history is no log."""
LONGEST_PAUSE: Final = timedelta(days=1)
"""Of one that is gone the pauses double up to this: some that are never come back, and a history has a limit. What
was asked of it is carried out as soon as it is back, whatever the pause."""

_ANY: Final = "that opens it"
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
    """Where the workspace is, and what a work order has been told of hosts."""

    workspace: Workspace | None = None
    dead: str = ""
    """The host that a person says is dead."""
    is_nudged: bool = False
    """Whether a person wants the host asked now."""
    is_back: bool = False
    """Whether the host was heard of again, which nobody has acted on yet: it may be told with its silence."""
    silent_since: dict[str, datetime] = field(default_factory=dict)
    """By host, of those that are silent: since when."""
    unanswered_since: dict[str, datetime] = field(default_factory=dict)
    """By host, of those whose silence people were told of: since when it has not answered. Decides nothing."""

    @property
    def here(self) -> Workspace:
        """The workspace where it is now."""
        if self.workspace is None:
            message = "the workspace is not open yet"
            raise RuntimeError(message)
        return self.workspace

    @property
    def is_dead(self) -> bool:
        """Whether a person says that the host of the workspace is dead."""
        return self.dead == self.here.host

    @property
    def is_silent(self) -> bool:
        """Whether the host of the workspace is silent."""
        return self.here.host in self.silent_since

    def take_words(self) -> bool:
        """Take what people have said, and return whether the host is dead by that."""
        is_dead, self.dead, self.is_nudged, self.is_back = self.is_dead, "", False, False
        return is_dead


class HostNews(Protocol):
    """Who is told what becomes of the host: a work order, or a round on its pull request."""

    def wait_for_host(self, error: TaskError, now: datetime) -> bool:
        """Wait for a host that is gone, and say why; return whether that is news."""

    def end_wait_for_host(self, now: datetime) -> bool:
        """Go on after a wait for a host; return whether there was one."""

    def move_to_host(self, lost_host: str, host: str, now: datetime) -> bool:
        """Go on on another host."""


class HostWait(ABC):
    """Waits for one activity after the other; how it learns that a host is gone, its kinds say."""

    def __init__(self, hosts: KnownHosts, state: HostNews, show: Callable[[], None]) -> None:
        """Know what the work order knows; `show` shows it where people look."""
        self.hosts = hosts
        self._state = state
        self._show = show

    @abstractmethod
    async def is_left(self, running: Running, call: HostCall) -> bool:
        """Wait until the activity has ended, or its workspace has moved: then a late result does not count."""

    @abstractmethod
    async def end_of(self, running: Running) -> Any:  # noqa: ANN401 -- what the activity returns
        """Wait for the end of an activity of cancelled work, and return what it came to.

        Raises:
            AgentLeft: The host is silent, and nobody waits for it.
        """

    @abstractmethod
    async def leave(self, running: Running, host: str) -> None:
        """Cancel an activity whose workspace has moved away from a host."""

    async def _answers(self) -> bool:
        """Ask the host whether it is there; where it is, what waited for it goes on."""
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
        """Return how long a silent host may still have a living agent."""
        limits = call.call.limits if isinstance(call, FinalizeCall) else Timeouts()
        limits = call.limits if isinstance(call, StepCall) else limits
        return timedelta(seconds=self.hosts.here.orphan_limit_seconds + limits.heartbeat_seconds)

    async def _move(self, call: HostCall, silent_since: datetime) -> bool:
        """Have the workspace opened elsewhere; where that cannot be, tell why and return `False`."""
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
        """Say which host is silent, and what becomes of the work order: nobody is to take it for running."""
        here = self.hosts.here
        silence = f"Host {here.host}, which has the workspace, has been silent since {since:%H:%M} UTC"
        goes_on, remedy = "it keeps no checkpoints elsewhere", _WAIT
        if here.kept:
            goes_on = f"the work order continues on another host at {gone_at:%H:%M} UTC"
            remedy = _NOW.format(host=here.host)
        self._block(f"{silence}; {goes_on}.", remedy, is_gone=False)

    def _times_of_silence(self, host: str, silent_since: datetime) -> str:
        """Return since when a host has not answered, and a later time to which it was said to be silent.

        The later time makes each repeat news, written into the row: without it earlier histories did not replay.
        """
        known = self.hosts.unanswered_since
        known[host] = min(silent_since, known.get(host, silent_since))
        first, last = timestamp(known[host]), timestamp(silent_since)
        return first if first == last else f"{first} (still silent at {last})"

    async def _open_elsewhere(self, call: HostCall) -> Workspace:
        """Return the workspace as another host has it; a lane that is open nowhere yet may be opened by anyone."""
        left = self.hosts.here
        if isinstance(call, EnterLane) and left.lane != call.lane.id:
            return left.model_copy(update={"host": _ANY, "task_queue": "", "control_queue": "", "serves": ()})
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
    """Return the snapshot that an activity goes on from; empty for a lane, which is made as new all the same."""
    if isinstance(call, FinalizeCall):
        return call.result.checkpoint or call.call.starts_from
    return call.starts_from if isinstance(call, StepCall) else ""
