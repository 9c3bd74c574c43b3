"""Check whether a host is alive, delete its old folders, and move a workspace here from a lost host."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import structlog
from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError, RPCStatusCode

from activities.host.cancellation import cancellable_thread
from activities.host.failures import OPENING_TRIES, translating_failures
from activities.host.frozen_inputs import read_frozen_inputs
from activities.host.host import Host
from activities.host.payloads import memo_json
from activities.host.remote_checkpoints import bring_session, checkpoint_ref
from activities.host.running_attempts import take_fence
from activities.workspaces.workspace_setup import forget_setup, set_up_workspace, writing
from septet.agents.clis.registry import check_usable
from septet.agents.outcomes.endings import SUPERSEDED
from septet.agents.sandbox.connections import end_agent
from septet.contracts.names import FOLLOWS, watch_id
from septet.contracts.steps import SweepCall
from septet.contracts.task import TaskError
from septet.contracts.workspace import AgentAnswer, AgentQuestion, CancelledWork, MoveWorkspace, Workspace
from septet.errors import AgentError, SealedError, WorkspaceError
from septet.git.checkpoints.keep import ChainState
from septet.git.checkpoints.move import WorkspaceMove, is_here, move_here, prepare_host
from septet.git.engine.address import parse_address
from septet.git.engine.place import Place
from septet.git.engine.remote import Remote
from septet.git.workspace.mirror import Base
from septet.git.workspace.workspace import place_for
from septet.janitor.sweep import Sweep, until
from septet.janitor.terms import Owner, SweepReport, Terms, combine_owners, distrust, pipeline_of
from septet.repository_file import load_repository_settings
from septet.settings import Settings
from septet.system.durable import write_durably
from septet.system.threads import LOOKS, shielded_thread


@dataclass(frozen=True, slots=True)
class HostActivities:
    """The activities that report on this host, or move a workspace to this host."""

    host: Host

    @activity.defn(name="probe_host")
    async def probe_host(self) -> str:
        """Return the host's id from its state directory. Writes nothing.

        Raises:
            ApplicationError: The state directory is gone, so this worker serves no host.
        """
        with translating_failures(self.host.state.root):
            return await shielded_thread(LOOKS, self._expect_state_directory)

    def _expect_state_directory(self) -> str:
        path = self.host.state.root / "host-id"
        if not path.exists() or path.read_text(encoding="ascii").strip() != self.host.id:
            message = f"{path.parent} is no longer the state directory of host {self.host.id}."
            raise WorkspaceError(message, remedy="Restart the worker.")
        return self.host.id

    @activity.defn(name="check_agent")
    async def check_agent(self, question: AgentQuestion) -> AgentAnswer:
        """Return whether this host can run an agent now, and if not, why. Writes nothing."""
        host = self.host
        agent = question.agent or host.settings.agent
        try:
            await shielded_thread(LOOKS, lambda: check_usable(agent, host.agents, host.state.root))
        except AgentError as error:
            name = type(error).__name__.removesuffix("Error")
            return AgentAnswer(error=TaskError(type=name, message=error.message, remedy=error.remedy))
        return AgentAnswer()

    @activity.defn(name="deliver_cancel")
    async def deliver_cancel(self, work: CancelledWork) -> None:
        """Notify the attempts in this process, at once, that their work order was cancelled. Idempotent.

        Raises:
            ApplicationError: No attempt of the work order runs here: another worker of this host may run it.
        """
        if not self.host.attempts.ask(work.work_order_id):
            message = f"nothing of {work.work_order_id} runs in this process"
            raise ApplicationError(message, type="NotHere", category=ApplicationErrorCategory.BENIGN)

    @activity.defn(name="move_workspace")
    async def move_workspace(self, request: MoveWorkspace) -> Workspace:
        """Open a lost host's workspace here, as it was at a checkpoint; a full host leaves the move to others.

        Idempotent: this uses the results of an earlier attempt. If this host has the work order already, its
        workspace stays. Leaves mirror, vault and workspace on disk, with the files of the repository's set-up, and
        this host's name on the checkpoint remote.

        Raises:
            ApplicationError: The checkpoint, the repository or the agent is missing here, or set-up failed.
        """
        async with self.host.working(most_tries=OPENING_TRIES):
            self.host.pass_on_if_full()
            network = self.host.threads.network
            move = await shielded_thread(network, self._plan_move, request)
            await shielded_thread(network, prepare_host, move)
            if request.workspace.host != self.host.id or not await shielded_thread(network, is_here, move):
                living = await shielded_thread(LOOKS, self.host.runs.living, move.place.order_id)
                if living is not None:  # from an earlier time on this host
                    await end_agent(living, SUPERSEDED)
                checkpoint = await shielded_thread(network, self._move, move, request.workspace)
                agents = tuple(filter(None, (request.workspace.agent, request.workspace.fallback_agent)))
                await shielded_thread(network, bring_session, self.host, move, checkpoint, agents)
                await cancellable_thread(network, self._set_up, move.place, request.workspace)
            here = {**self.host.whereabouts, "path": str(move.place.worktree)}
            return request.workspace.model_copy(update=here)

    def _move(self, move: WorkspaceMove, workspace: Workspace) -> ChainState:
        """Move the workspace while holding the writer's lock; an older attempt on this host may still run."""
        with take_fence(self.host.runs, workspace.place_id, workspace.visit).lease.hold():
            forget_setup(move.place)
            return move_here(move, self.host.snapshots.options("the work order comes back to this host"))

    def _set_up(self, place: Place, workspace: Workspace) -> None:
        """Run the repository's set-up on this host, because files that git ignores may be missing."""
        settings = load_repository_settings(read_frozen_inputs(place).files.get)
        hold = partial(writing, self.host, workspace.place_id, workspace.visit)
        set_up_workspace(self.host, place, settings, hold)

    def _plan_move(self, request: MoveWorkspace) -> WorkspaceMove:
        """Return the facts that the move needs; raise if this host cannot run the agent."""
        host, workspace = self.host, request.workspace
        if host.settings.checkpoint_remote is None:
            message = f"Host {host.id} has no checkpoint remote, so it cannot take over from {workspace.host}."
            remedy = (
                "Set SEPTET_CHECKPOINT_REMOTE for all hosts alike, restart their workers, "
                f"then run `septet host-gone {workspace.host}` again."
            )
            raise WorkspaceError(message, remedy=remedy)
        address = parse_address(workspace.repository, home=Path.home())
        place = place_for(
            host.state,
            workspace.place_id,
            address,
            Base(workspace.base_branch, workspace.base_sha),
            host.settings.git_env,
        )
        if workspace.fork:
            place = replace(place, fork=address.beside(workspace.fork).url)
        check_usable(workspace.agent, host.agents, place.worktree)
        return WorkspaceMove(
            place,
            checkpoint_ref(host, place, workspace.opened_by),
            Remote(address.url, place.env, host.forges.token(address)),
            request.checkpoint,
            host.id,
        )


_PASS_SECONDS: Final = 900.0
"""The longest time of one pass in seconds; the next pass deletes the remaining folders."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SweepHost:
    """The janitor of one host; it deletes folders whose retention has ended."""

    host: Host
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    @activity.defn(name="sweep_host")
    async def run(self, call: SweepCall) -> SweepReport:
        """Delete folders whose retention has ended; the next pass continues an interrupted pass.

        Idempotent: this reads only folders that still exist. A workspace is deleted only if its last snapshot was
        verified. Nothing of a running work order is deleted.

        Raises:
            ApplicationError: The disk refused.
        """
        async with self.host.working():
            swept = await self._sweep(call)
        _log.info("host_swept", removed=swept.removed_count, refused=swept.refused_count, note=swept.note)
        return swept.model_copy(update={"host": self.host.id})

    async def _sweep(self, call: SweepCall) -> SweepReport:
        now = self.clock()
        last_pass = await shielded_thread(self.host.threads.disk, self._note_pass, now)
        if why := distrust(last_pass, now, call.server_now):
            return SweepReport(note=f"{why} Nothing was removed in this pass.")
        settings, state = self.host.settings, self.host.state
        stopping, in_time = activity.is_worker_shutdown, until(_PASS_SECONDS)
        client, loop = activity.client(), asyncio.get_running_loop()

        def find(place_id: str) -> Owner:  # in the thread of the sweep
            return asyncio.run_coroutine_threadsafe(find_owner(client, place_id), loop).result(60.0)

        runs, go_on = self.host.runs, lambda: in_time() and not stopping()
        sweep = Sweep(state, runs, terms_of(settings), settings.git_env, find, now, go_on)
        return await shielded_thread(self.host.threads.disk, sweep.run)

    def _note_pass(self, now: datetime) -> datetime | None:
        """Write the start of this pass to disk; return the start of the previous pass, or `None`."""
        path = self.host.state.janitor_file
        try:
            last = datetime.fromisoformat(json.loads(path.read_bytes())["last_pass_at"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            last = None
        write_durably(path, json.dumps({"last_pass_at": now.isoformat()}).encode())
        return last


def terms_of(settings: Settings) -> Terms:
    """Return how long this host keeps folders, and the limits for ignored files."""
    return Terms(
        workspaces_days=settings.keep_workspaces_days,
        runs_days=settings.keep_runs_days,
        snapshots_days=settings.keep_snapshots_days,
        mirrors_days=settings.keep_mirrors_days,
        forgotten_days=settings.keep_forgotten_days,
        ignored_limit_bytes=settings.ignored_limit_bytes,
        drop_ignored=settings.drop_ignored_files,
    )


async def find_owner(client: Client, place_id: str) -> Owner:
    """Return a workspace's owner: running while work order or pipeline runs, or the pull request is followed."""
    own, pipeline_id = await _describe_workflow(client, place_id), pipeline_of(place_id)
    if own.status != "running" and pipeline_id is None and await _is_followed(client, place_id):
        return Owner("running")
    return own if pipeline_id is None else combine_owners(own, await _describe_workflow(client, pipeline_id))


async def _is_followed(client: Client, order_id: str) -> bool:
    """Return whether an agent may still follow a work order's pull request; `True` if that is unknown."""
    try:
        watch = await client.get_workflow_handle(watch_id(order_id)).describe()
    except RPCError as error:
        return error.status is not RPCStatusCode.NOT_FOUND
    if watch.status is not WorkflowExecutionStatus.RUNNING:
        return False
    try:
        return await memo_json(watch, FOLLOWS) == b"true"
    except SealedError:
        return True


async def _describe_workflow(client: Client, workflow_id: str) -> Owner:
    """Return an owner that is a workflow; if the server does not answer, the workflow counts as running."""
    try:
        workflow = await client.get_workflow_handle(workflow_id).describe()
    except RPCError as error:
        return Owner("unknown" if error.status is RPCStatusCode.NOT_FOUND else "running")
    if workflow.status is WorkflowExecutionStatus.RUNNING:
        return Owner("running")
    return Owner("closed", workflow.close_time)
