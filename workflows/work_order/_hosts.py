"""Where a work order's activities run: on the host of its workspace, or on another one when that host is gone.

Gone is not busy: each host answers probes on a queue of its own. It is gone when it has not answered for as long
as its agents may live unseen, or when a person says so.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from septet.contracts.lanes import EnterLane
from septet.contracts.limits import Timeouts
from septet.contracts.steps import FinalizeCall, StepCall, StepResult
from septet.contracts.task import TaskError
from septet.contracts.workspace import DELIVERS_CANCELS, CancelledWork, MoveWorkspace, Workspace
from septet.system.timestamps import timestamp
from workflows._cancellation import cancel_and_wait, forget, is_to_end
from workflows._failures import explain_failure
from workflows.activity_stubs import DELIVER_CANCEL, MOVE_WORKSPACE, PROBE_HOST
from workflows.policies import WORKSPACE_OPTIONS, deliver_options, probe_options
from workflows.work_order.state import WorkOrderState

_RAREST: Final = 10
"""A host that answers is asked ever more rarely, up to so many times the first pause: a history is no log."""

_LATE_CANCEL: Final = "late-cancel"
"""Before it, a cancel that met the end of an activity was forgotten with it."""

_DELIVERY: Final = "delivers-cancels"
"""Before it, a cancel came with the answer to a heartbeat, which came every two seconds."""
_RARE_HEARTBEATS: Final = "patience-of-rare-heartbeats"
_FREQUENT_HEARTBEAT_SECONDS: Final = 30.0
"""Before it, the time-out of heartbeats where nobody chose another."""

_ANY: Final = "that opens it"
_WAIT: Final = (
    "Start a worker on its state directory: the work order goes on by itself as soon as the host answers."
)

AnyCall = TypeVar("AnyCall", StepCall, FinalizeCall, EnterLane)
AnyStepCall = TypeVar("AnyStepCall", StepCall, FinalizeCall)
Result = TypeVar("Result")
Running = workflow.ActivityHandle[StepResult]


class HostWatch:
    """The hosts of one work order."""

    def __init__(self, state: WorkOrderState, show: Callable[[], None]) -> None:
        """Begin without a workspace; `show` shows the work order where people look."""
        self.workspace: Workspace | None = None
        self._state = state
        self._show = show
        self._dead_host = ""
        """The host that a person says is dead."""
        self._is_nudged = False

    @property
    def here(self) -> Workspace:
        """The workspace where it is now."""
        if self.workspace is None:
            message = "the workspace is not open yet"
            raise RuntimeError(message)
        return self.workspace

    def holds(self, host: str) -> bool:
        """Say whether a host has the workspace."""
        return self.workspace is not None and self.workspace.host == host

    def give_up(self, host: str) -> None:
        """Take a person's word that a host is dead."""
        self._dead_host = host

    def nudge(self) -> None:
        """Ask the host again now, however rarely it is asked."""
        self._is_nudged = True

    async def carry_out(self, call: AnyStepCall, start: Callable[[AnyStepCall], Running]) -> StepResult:
        """Carry an activity out where the workspace is; when that host is gone, once more on another one.

        Raises:
            asyncio.CancelledError: The work order is to end. What went on when that was said has ended by itself.
        """
        warnings: list[str] = []
        return _add_warnings(await self._follow(call, start, warnings), warnings)

    async def enter(
        self, call: EnterLane, start: Callable[[EnterLane], workflow.ActivityHandle[Workspace]]
    ) -> Workspace:
        """Enter a lane where it was left; when that host is gone, on another one.

        Raises:
            asyncio.CancelledError: The work order is to end.
        """
        if call.lane.workspace is None:
            return await start(call)
        order_id = call.opening.work_order_id
        self.workspace = call.lane.workspace.model_copy(update={"work_order_id": order_id, "visit": call.visit})
        return await self._follow(call, start, [])

    async def _follow(
        self, call: AnyCall, start: Callable[[AnyCall], workflow.ActivityHandle[Result]], warnings: list[str]
    ) -> Result:
        """Wait for an activity's end, on one host after the other; what that costs is put into `warnings`."""
        if is_to_end() and workflow.patched(_LATE_CANCEL):
            raise asyncio.CancelledError
        while True:
            call = place_call(call, self.here)
            running = start(call)
            try:
                if not self.here.control_queue or not await self._is_left(running, call):
                    return await running
            except (asyncio.CancelledError, ActivityError) as error:
                if running.done() or not is_cancelled_exception(error):
                    raise
                running.cancel()
                self._deliver_cancel()
                return await running
            warnings.append(
                f"taken again on host {self.here.host}: what an agent did on the gone host is paid twice"
            )
            await cancel_and_wait(running)

    def _deliver_cancel(self) -> None:
        """Have the host's attempt ask whether it is cancelled, where the server does not push cancels."""
        if DELIVERS_CANCELS in self.here.serves and workflow.patched(_DELIVERY):
            delivery = DELIVER_CANCEL.start(
                CancelledWork(work_order_id=workflow.info().workflow_id),
                task_queue=self.here.control_queue,
                summary="the cancel, delivered",
                **deliver_options(),
            )
            forget(delivery)

    async def _is_left(
        self, running: workflow.ActivityHandle[Any], call: StepCall | FinalizeCall | EnterLane
    ) -> bool:
        """Wait until the activity has ended, or its workspace has moved: then a late result does not count."""
        first = pause = timedelta(seconds=self.here.probe_seconds)
        silent_since: datetime | None = None
        while not await self._ends_within(running, pause):
            is_dead, self._dead_host, self._is_nudged = self._dead_host == self.here.host, "", False
            if not is_dead and await self._answers():
                self._show_if(self._state.end_wait_for_host(workflow.now()))
                pause = min(2 * pause, _RAREST * first) if silent_since is None else first
                silent_since = None
                continue
            silent_since = silent_since or workflow.now()
            if not is_dead and workflow.now() - silent_since < self._patience(call):
                pause = first
            elif await self._move(call, silent_since):
                return True
            else:
                pause = min(2 * pause, _RAREST * first)
        self._show_if(self._state.end_wait_for_host(workflow.now()))
        return False

    async def _ends_within(self, running: Running, pause: timedelta) -> bool:
        """Wait for the activity's end, a person's word, or the time to ask."""
        with suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: running.done() or self._is_nudged or self._dead_host == self.here.host,
                timeout=pause,
                timeout_summary="is the host there?",
            )
        return running.done()

    async def _answers(self) -> bool:
        """Ask the host whether it is there."""
        try:
            await PROBE_HOST.start(
                None,
                task_queue=self.here.control_queue,
                summary=f"is host {self.here.host} there?",
                **probe_options(self.here.probe_seconds),
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            return False
        return True

    def _patience(self, call: StepCall | FinalizeCall | EnterLane) -> timedelta:
        """Return how long a silent host may still have a living agent."""
        limits = call.call.limits if isinstance(call, FinalizeCall) else Timeouts()
        limits = call.limits if isinstance(call, StepCall) else limits
        seconds = limits.heartbeat_seconds
        if "heartbeat_seconds" not in limits.model_fields_set and not workflow.patched(_RARE_HEARTBEATS):
            seconds = _FREQUENT_HEARTBEAT_SECONDS
        return timedelta(seconds=self.here.orphan_limit_seconds + seconds)

    async def _move(self, call: StepCall | FinalizeCall | EnterLane, silent_since: datetime) -> bool:
        """Have the workspace opened elsewhere; where that cannot be, tell why and return `False`."""
        left = self.here
        silence = f"Host {left.host}, which has the workspace, has not answered since {timestamp(silent_since)}"
        if not left.kept:
            error = TaskError(
                type="HostGone", message=f"{silence}; it keeps no checkpoints elsewhere.", remedy=_WAIT
            )
            self._show_if(self._state.wait_for_host(error, workflow.now()))
            return False
        try:
            self.workspace = await self._open_elsewhere(call)
        except ActivityError as failed:
            if is_cancelled_exception(failed):
                raise
            why, _ = explain_failure(failed)
            remedy = f"{why.remedy} {_WAIT}".strip()
            error = TaskError(
                type="HostGone", message=f"{silence}, and no other could go on: {why.message}", remedy=remedy
            )
            self._show_if(self._state.wait_for_host(error, workflow.now()))
            return False
        if self.here.host == left.host:
            return False
        self._show_if(self._state.move_to_host(left.host, self.here.host, workflow.now()))
        return True

    async def _open_elsewhere(self, call: StepCall | FinalizeCall | EnterLane) -> Workspace:
        """Return the workspace as another host has it; a lane that is open nowhere yet may be opened by anyone."""
        left = self.here
        if isinstance(call, EnterLane) and left.lane != call.lane.id:
            return left.model_copy(update={"host": _ANY, "task_queue": "", "control_queue": ""})
        return await MOVE_WORKSPACE.start(
            MoveWorkspace(workspace=left, checkpoint=checkpoint_of(call)),
            summary=f"host {left.host} is gone: its workspace opens elsewhere",
            **WORKSPACE_OPTIONS,
        )

    def _show_if(self, is_news: bool) -> None:
        if is_news:
            self._show()


def place_call(call: AnyCall, workspace: Workspace) -> AnyCall:
    """Return what is asked, for the workspace where it is now."""
    if isinstance(call, FinalizeCall):
        return call.model_copy(update={"call": place_call(call.call, workspace)})
    if isinstance(call, EnterLane):
        return call.model_copy(update={"lane": call.lane.at(workspace)})
    return call.model_copy(update={"workspace": workspace})


def checkpoint_of(call: StepCall | FinalizeCall | EnterLane) -> str:
    """Return the snapshot that an activity goes on from; empty for a lane, which is made as new all the same."""
    if isinstance(call, FinalizeCall):
        return call.result.checkpoint or call.call.starts_from
    return call.starts_from if isinstance(call, StepCall) else ""


def _add_warnings(result: StepResult, warnings: list[str]) -> StepResult:
    """Return a result that says that it was come by on another host."""
    if not warnings:
        return result
    values = {"recovered_by": result.recovered_by or "rerun", "warnings": (*result.warnings, *warnings)}
    return result.model_copy(update=values)
