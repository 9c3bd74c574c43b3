"""One pass of the janitor over a host."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import structlog
from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from activities.host.host import Host
from activities.host.payloads import memo_json
from septet.contracts.names import FOLLOWS, watch_id
from septet.contracts.steps import SweepCall
from septet.errors import SealedError
from septet.janitor.sweep import Sweep, until
from septet.janitor.terms import FindOwner, Owner, SweepReport, Terms, combine_owners, distrust, pipeline_of
from septet.settings import Settings
from septet.system.durable import write_durably
from septet.system.threads import shielded_thread

_PASS_SECONDS: Final = 900.0
"""The seconds of the longest pass; the next pass removes the rest."""
_ANSWER_SECONDS: Final = 60.0

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SweepHost:
    """The janitor of one host."""

    host: Host
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    """This host's clock."""

    @activity.defn(name="sweep_host")
    async def run(self, call: SweepCall) -> SweepReport:
        """Remove folders whose retention has ended; the next pass continues an interrupted pass.

        Idempotent: this reads only the folders that exist. It removes a workspace only with a verified
        snapshot, and removes nothing of a running work order.

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
        find = _owner_finder(activity.client(), asyncio.get_running_loop())
        runs, go_on = self.host.runs, lambda: in_time() and not stopping()
        sweep = Sweep(state, runs, terms_of(settings), settings.git_env, find, now, go_on)
        return await shielded_thread(self.host.threads.disk, sweep.run)

    def _note_pass(self, now: datetime) -> datetime | None:
        """Write the start of this pass to disk, and return the start of the previous pass."""
        path = self.host.state.janitor_file
        try:
            last = datetime.fromisoformat(json.loads(path.read_bytes())["last_pass_at"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            last = None
        write_durably(path, json.dumps({"last_pass_at": now.isoformat()}).encode())
        return last


def terms_of(settings: Settings) -> Terms:
    """Return the host's retention times."""
    return Terms(
        workspaces_days=settings.keep_workspaces_days,
        runs_days=settings.keep_runs_days,
        snapshots_days=settings.keep_snapshots_days,
        mirrors_days=settings.keep_mirrors_days,
        forgotten_days=settings.keep_forgotten_days,
        ignored_limit_bytes=settings.ignored_limit_bytes,
        drop_ignored=settings.drop_ignored_files,
    )


def _owner_finder(client: Client, loop: asyncio.AbstractEventLoop) -> FindOwner:
    """Return a function that reads the owner of a workspace from the server, for threads other than the loop's."""

    def find(place_id: str) -> Owner:
        return asyncio.run_coroutine_threadsafe(find_owner(client, place_id), loop).result(_ANSWER_SECONDS)

    return find


async def find_owner(client: Client, place_id: str) -> Owner:
    """Return the owner of a workspace: a work order, with the agent that follows it, or a pipeline."""
    own, pipeline_id = await _describe_workflow(client, place_id), pipeline_of(place_id)
    if own.status != "running" and pipeline_id is None and await _is_followed(client, place_id):
        return Owner("running")
    return own if pipeline_id is None else combine_owners(own, await _describe_workflow(client, pipeline_id))


async def _is_followed(client: Client, order_id: str) -> bool:
    """Return whether an agent may still work on a work order's pull request; `True` if the answer is unknown."""
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
    """Return a workflow as an owner; without a server's answer, the workflow counts as running."""
    try:
        workflow = await client.get_workflow_handle(workflow_id).describe()
    except RPCError as error:
        return Owner("unknown" if error.status is RPCStatusCode.NOT_FOUND else "running")
    if workflow.status is WorkflowExecutionStatus.RUNNING:
        return Owner("running")
    return Owner("closed", workflow.close_time)
