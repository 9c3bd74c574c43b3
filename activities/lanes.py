"""Lanes: the workspaces of a pipeline, which its work orders use one after the other."""

from dataclasses import dataclass, replace
from functools import partial

from temporalio import activity

from activities._failures import OPENING_TRIES, failures_told
from activities._fence import Fence, own_lease
from activities._heartbeats import heartbeating, shielded_thread
from activities._keeping import KeptSession, keep, shelf_of
from activities._room import Host
from activities.workspaces import WorkspaceActivities
from septet.agents.clis.endings import SUPERSEDED
from septet.agents.runs.handover import pass_on
from septet.agents.turns.finalize_run import end_all
from septet.contracts.lanes import CloseLanes, EnterLane
from septet.contracts.workspace import Workspace
from septet.errors import NotFoundError
from septet.git.destroy import Why
from septet.git.evidence import current_head
from septet.git.lane import switch
from septet.git.move import bring_snapshot
from septet.git.place import Place
from septet.git.snapshots.vault import find, first_and_last, vault_at
from septet.settings import MIB


@dataclass(frozen=True, slots=True)
class LaneActivities:
    """The lanes of one host."""

    host: Host

    @activity.defn(name="enter_lane")
    async def enter_lane(self, asked: EnterLane) -> Workspace:
        """Make a lane ready for a work order: as fresh as a new workspace, with the plan in it where there is one.

        Idempotent. What the work order before has left and nobody kept is rescued. Leaves the lane's workspace,
        vault and papers on disk.

        Raises:
            ApplicationError: The repository, the issue, the agent or the plan cannot be used.
        """
        with failures_told(self.host.state.root, most_tries=OPENING_TRIES):
            async with heartbeating():
                gate = Fence(own_lease(self.host.means.runs, asked.lane.id, asked.visit))
                await self._end_stranger(asked.lane.id, gate)
                return await gate.as_writer(partial(self._entered, asked, gate))

    @activity.defn(name="close_lanes")
    async def close_lanes(self, asked: CloseLanes) -> None:
        """End the agents of a pipeline that is over. Idempotent. The lanes stay, with all that is in them.

        Raises:
            ApplicationError: An agent could not be ended.
        """
        with failures_told(self.host.state.root):
            for lane in asked.lanes:
                await end_all(self.host.means.runs, lane, SUPERSEDED)

    def _bring(self, place: Place, name: str, run_id: str) -> None:
        """Have a snapshot of one of the pipeline's lanes here; the lane may have been left on another host."""
        try:
            find(vault_at(place), name)
        except NotFoundError:
            if self.host.settings.checkpoint_remote is None:
                raise
            lane = name.rpartition("/")[0]
            there = replace(place, order_id=lane)
            bring_snapshot(there, shelf_of(self.host, there, run_id), name)

    async def _end_stranger(self, lane: str, gate: Fence) -> None:
        """End an agent that works in the lane all the same; one that waits there for its next turn is wanted."""
        if await shielded_thread(self.host.means.runs.living, lane) is not None:
            await shielded_thread(gate.check)  # an attempt that was held up until now finds the next one's agent
            await end_all(self.host.means.runs, lane, SUPERSEDED)

    def _entered(self, asked: EnterLane, gate: Fence) -> Workspace:
        """Find the lane open, or open it, and make it ready."""
        pass_on(self.host.means.runs, asked.lane.id)
        place, workspace = WorkspaceActivities(self.host).open(asked.opening, asked.lane.id, asked.lane.opened_by)
        workspace = workspace.model_copy(update={"lane": asked.lane.id, "visit": asked.visit})
        for name in filter(None, (asked.lane.starts_from, asked.plan_snapshot)):
            self._bring(place, name, asked.lane.opened_by)
        start = find(vault_at(place), asked.lane.starts_from or workspace.checkpoint)
        plan = (asked.plan_snapshot, asked.plan_path) if asked.plan_path else None
        limit = self.host.settings.ignored_limit_mib * MIB
        rescue = switch(place, start, Why("the lane is passed on", limit), plan)
        if rescue is not None:
            self.host.note(place, rescue)
        known = first_and_last(vault_at(place), place.order_id)
        entry = {
            "began_at": current_head(place).sha if asked.lane.starts_from else "",
            "checkpoint": start.name,
            "entered_after": known[1].name if known else "",
            "lacks": asked.lane.lacks,
        }
        workspace = workspace.model_copy(update=entry)
        if plan is None:
            return workspace
        fresh = self.host.snapshot(place, "checkpoint", f"the lane is {asked.opening.work_order_id}'s now")
        with gate.halting():  # its first step may have to begin elsewhere, with this and the session before it
            keep(self.host, place, _session_before(asked, workspace), claims=_was_to_be_elsewhere(asked))
        return workspace.model_copy(update={"checkpoint": fresh.name if fresh is not None else start.name})


def _session_before(asked: EnterLane, workspace: Workspace) -> KeptSession | None:
    """Return the session with which the lane is entered: what is kept last must hold it."""
    return KeptSession(workspace.agent, asked.lane.session_id) if asked.lane.session_id else None


def _was_to_be_elsewhere(asked: EnterLane) -> bool:
    """Say whether a host that is gone was to open the lane: it may have done so, and nobody has heard of it."""
    return asked.lane.workspace is not None and not asked.lane.task_queue
