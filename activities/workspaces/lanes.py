"""Lanes: the workspaces of a pipeline, which its work orders use one after the other."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial

from temporalio import activity

from activities.host.failures import OPENING_TRIES, translating_failures
from activities.host.host import Host
from activities.host.remote_checkpoints import KeptSession, checkpoint_ref, keep
from activities.host.running_attempts import Fence, take_fence
from activities.workspaces.workspace_setup import Writer
from activities.workspaces.workspaces import WorkspaceActivities
from septet.agents.outcomes.endings import SUPERSEDED
from septet.agents.runs.usage import pass_on
from septet.agents.turns.end_of_turn import end_all
from septet.contracts.lanes import CloseLanes, EnterLane
from septet.contracts.workspace import Workspace
from septet.errors import NotFoundError
from septet.git.checkpoints.move import bring_snapshot
from septet.git.engine.place import Place
from septet.git.evidence.evidence import current_head
from septet.git.vault.vault import find, first_and_last, vault_at
from septet.git.workspace.plan import switch
from septet.system.threads import LOOKS, shielded_thread, stoppable_thread


@dataclass(frozen=True, slots=True)
class LaneActivities:
    """The lanes of one host."""

    host: Host

    @activity.defn(name="enter_lane")
    async def enter_lane(self, request: EnterLane) -> Workspace:
        """Make a lane ready for a work order: as clean as a new workspace, with the work order's plan, if any.

        Hosts without a free slot for an agent pass on a lane that any host may open.

        Idempotent. A rescue keeps unkept changes of the previous work order. Leaves the lane's workspace,
        vault and frozen inputs on disk.

        Raises:
            ApplicationError: The repository, the issue, the agent or the plan cannot be used.
        """
        async with self.host.working(most_tries=OPENING_TRIES):
            self.host.pass_on_if_full()
            take = partial(take_fence, self.host.runs, request.lane.id, request.visit)
            fence = await shielded_thread(self.host.threads.disk, take)
            await self._end_stranger(request.lane.id, fence)
            return await stoppable_thread(self.host.threads.network, fence.halt.now, self._enter, request, fence)

    @activity.defn(name="close_lanes")
    async def close_lanes(self, request: CloseLanes) -> None:
        """End the agents of a pipeline that is over. Idempotent. The lanes and their files stay.

        Raises:
            ApplicationError: An agent could not be ended.
        """
        with translating_failures(self.host.state.root):
            for lane in request.lanes:
                await end_all(self.host.runs, lane, SUPERSEDED)

    def _bring(self, place: Place, name: str, run_id: str) -> None:
        """Fetch a snapshot of a lane of the pipeline, if this host lacks the snapshot."""
        try:
            find(vault_at(place), name)
        except NotFoundError:
            if self.host.settings.checkpoint_remote is None:
                raise
            lane = name.rpartition("/")[0]
            there = replace(place, order_id=lane)
            bring_snapshot(there, checkpoint_ref(self.host, there, run_id), name)

    async def _end_stranger(self, lane: str, fence: Fence) -> None:
        """End an agent that still works in the lane; an agent that waits for its next turn stays."""
        if await shielded_thread(LOOKS, self.host.runs.living, lane) is not None:
            # A delayed attempt finds the agent of the next attempt.
            await shielded_thread(LOOKS, fence.check)
            await end_all(self.host.runs, lane, SUPERSEDED)

    def _enter(self, request: EnterLane, fence: Fence) -> Workspace:
        """Open the lane unless it is open, and make it ready; hold the writer's lock meanwhile."""
        with fence.lease.hold() as lock:
            return self._make_ready(request, fence, Writer(fence.lease, lock))

    def _make_ready(self, request: EnterLane, fence: Fence, writer: Writer) -> Workspace:
        pass_on(self.host.runs, request.lane.id)
        with fence.halt.over():  # ends a remote that hangs, and a set-up
            place, workspace = WorkspaceActivities(self.host).open(
                request.opening, request.lane.id, request.lane.opened_by, lambda: nullcontext(writer)
            )
        workspace = workspace.model_copy(update={"lane": request.lane.id, "visit": request.visit})
        for name in filter(None, (request.lane.starts_from, request.plan_snapshot)):
            self._bring(place, name, request.lane.opened_by)
        start = find(vault_at(place), request.lane.starts_from or workspace.checkpoint)
        plan = (request.plan_snapshot, request.plan_path) if request.plan_path else None
        self.host.snapshots.note_rescue(
            place, switch(place, start, self.host.snapshots.options("the lane is passed on"), plan)
        )
        known = first_and_last(vault_at(place), place.order_id)
        entry = {
            "began_at": current_head(place).sha if request.lane.starts_from else "",
            "checkpoint": start.name,
            "entered_after": known[1].name if known else "",
            "lacks": request.lane.lacks,
        }
        workspace = workspace.model_copy(update=entry)
        if plan is None and not request.lane.starts_from:
            return workspace
        fresh = self.host.snapshots.take(place, "checkpoint", f"the lane is {request.opening.work_order_id}'s now")
        with fence.halt.over():  # the first step may begin on another host, with this and the session
            keep(self.host, place, _session_before(request, workspace), claims=_was_to_be_elsewhere(request))
        return workspace.model_copy(update={"checkpoint": fresh.name if fresh is not None else start.name})


def _session_before(request: EnterLane, workspace: Workspace) -> KeptSession | None:
    """Return the session of the lane, which the last kept state must hold."""
    return KeptSession(workspace.agent, request.lane.session_id) if request.lane.session_id else None


def _was_to_be_elsewhere(request: EnterLane) -> bool:
    """Return whether a lost host was to open the lane; that host may have opened the lane without a report."""
    return request.lane.workspace is not None and not request.lane.task_queue
