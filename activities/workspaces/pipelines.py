"""The activities of pipelines: enter and close lanes, read issues from a forge, and write records."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial

from temporalio import activity

from activities.host.cancellation import cancellable_thread
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
from septet.pipelines.inputs import IssuesRead, ReadIssues
from septet.pipelines.issues import read_issues
from septet.pipelines.records import note, report
from septet.pipelines.store import store_of
from septet.pipelines.views import PipelineView
from septet.system.threads import LOOKS, shielded_thread, stoppable_thread


@dataclass(frozen=True, slots=True)
class PipelineActivities:
    """Reads issues for pipelines, and writes the records of pipelines, on one host."""

    host: Host

    @activity.defn(name="read_issues")
    async def read_issues(self, request: ReadIssues) -> IssuesRead:
        """Return issues of a forge with their titles, and the dependencies that their texts name.

        A dependency outside of these issues is ignored. Idempotent; writes nothing.

        Raises:
            ApplicationError: Issues are missing or closed, no open issue has the label, or the forge did not
                answer.
        """
        async with self.host.working(most_tries=OPENING_TRIES):
            forges = self.host.forges
            issues = await cancellable_thread(
                self.host.threads.network, lambda: read_issues(forges.of(request.repository)[1], request)
            )
            return IssuesRead(issues=issues)

    @activity.defn(name="note_results")
    async def note_results(self, view: PipelineView) -> None:
        """Record the state of changed issues, and write the results of planning and of execution.

        Idempotent. Leaves `STATE/pipelines/<id>/planning-results.json` and `execution-results.json`, which hold
        all issues ever recorded here and are replaced in one step.

        Raises:
            ApplicationError: The disk refused.
        """
        with translating_failures(self.host.state.root):
            await shielded_thread(self.host.threads.disk, note, store_of(self.host.state, view.id), view)

    @activity.defn(name="write_report")
    async def write_report(self, view: PipelineView) -> None:
        """Record the issues as `note_results` does, and write the pipeline's report.

        Idempotent. Leaves `STATE/pipelines/<id>/report.md` and `report.json`.

        Raises:
            ApplicationError: The disk refused.
        """
        with translating_failures(self.host.state.root):
            await shielded_thread(self.host.threads.disk, report, store_of(self.host.state, view.id), view)


@dataclass(frozen=True, slots=True)
class LaneActivities:
    """Prepares lanes for work orders, and closes lanes, on one host."""

    host: Host

    @activity.defn(name="enter_lane")
    async def enter_lane(self, request: EnterLane) -> Workspace:
        """Prepare a lane for a work order: as clean as a new workspace, with the work order's plan, if any.

        Idempotent. If any host may open the lane, a full host leaves the lane to other hosts. A rescue saves
        unsaved work of the previous work order. Leaves the lane's workspace, vault and frozen inputs on disk.

        Raises:
            ApplicationError: The repository, the issue, the agent or the plan cannot be used.
        """
        async with self.host.working(most_tries=OPENING_TRIES):
            self.host.pass_on_if_full()
            take = partial(take_fence, self.host.runs, request.lane.id, request.visit)
            fence = await shielded_thread(self.host.threads.disk, take)
            if await shielded_thread(LOOKS, self.host.runs.living, request.lane.id) is not None:
                # A delayed attempt finds the agent of the next attempt.
                await shielded_thread(LOOKS, fence.check)
                await end_all(self.host.runs, request.lane.id, SUPERSEDED)
            return await stoppable_thread(self.host.threads.network, fence.halt.now, self._enter, request, fence)

    @activity.defn(name="close_lanes")
    async def close_lanes(self, request: CloseLanes) -> None:
        """End the agents of a completed pipeline. Idempotent. The lanes and their files stay.

        Raises:
            ApplicationError: An agent could not be ended.
        """
        with translating_failures(self.host.state.root):
            for lane in request.lanes:
                await end_all(self.host.runs, lane, SUPERSEDED)

    def _bring(self, place: Place, name: str, run_id: str) -> None:
        """Fetch a snapshot of another lane of the pipeline, unless this host has the snapshot."""
        try:
            find(vault_at(place), name)
        except NotFoundError:
            if self.host.settings.checkpoint_remote is None:
                raise
            lane = name.rpartition("/")[0]
            there = replace(place, order_id=lane)
            bring_snapshot(there, checkpoint_ref(self.host, there, run_id), name)

    def _enter(self, request: EnterLane, fence: Fence) -> Workspace:
        """Open the lane if needed, and prepare it, while holding the writer's lock."""
        with fence.lease.hold() as lock:
            pass_on(self.host.runs, request.lane.id)
            with fence.halt.over():  # ends a remote that hangs, and a set-up
                place, workspace = WorkspaceActivities(self.host).open(
                    request.opening,
                    request.lane.id,
                    request.lane.opened_by,
                    lambda: nullcontext(Writer(fence.lease, lock)),
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
            fresh = self.host.snapshots.take(
                place, "checkpoint", f"the lane is {request.opening.work_order_id}'s now"
            )
            session = KeptSession(workspace.agent, request.lane.session_id) if request.lane.session_id else None
            # A lost host may have opened the lane without a report.
            claims = request.lane.workspace is not None and not request.lane.task_queue
            with fence.halt.over():  # another host may need this and the session for the first step
                keep(self.host, place, session, claims=claims)
            return workspace.model_copy(update={"checkpoint": fresh.name if fresh is not None else start.name})
