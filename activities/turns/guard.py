"""Decide what a cancel or an error of an attempt means for its agent and for the next attempt."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError

from activities.host.cancellation import activity_handle, was_reset, why_agent_ends
from activities.host.failures import failure, will_retry
from activities.host.host import Host
from activities.turns.prepared_steps import PreparedTurn
from septet.agents.outcomes.endings import CANCELLED, PAUSED, RESET
from septet.agents.runs.folders import Runs
from septet.agents.sandbox.connections import end_agent
from septet.agents.turns.end_of_turn import end_all
from septet.agents.turns.request import TurnRequest
from septet.contracts.workspace import DELIVERS_CANCELS, Workspace
from septet.errors import (
    AgentError,
    GitError,
    MirrorMendedError,
    SeptetError,
    SnapshotError,
    SupersededError,
    WorkspaceError,
)
from septet.git.engine.git_words import looks_damaged
from septet.git.engine.place import Place
from septet.git.engine.remote import Remote
from septet.git.workspace.mirror import mend_mirror
from septet.system.disk import diagnosed
from septet.system.threads import shielded_thread

_RETRY: Final = "The worktree is kept. Run `septet retry` to continue."

_log = structlog.get_logger()

_END_WITHIN_SECONDS: Final = 15.0


async def leave_paused_or_reset(request: TurnRequest) -> None:
    """End the agent of an attempt that was paused or reset; after any other cancel, do nothing.

    After a pause, session and worktree stay. After a reset, the agents so far no longer count: the next attempt
    takes a rescue, restores the step's first checkpoint and starts a new agent.

    Raises:
        ApplicationError: The attempt was paused or reset; the ended agent does not count as a start.
        AgentError: The agent could not be ended.
    """
    details = activity.cancellation_details()
    if details is None:
        return
    info, unknown = activity.info(), details.not_found
    reset = details.reset or (
        unknown and await was_reset(activity.client(), request.key, info.attempt, info.started_time.timestamp())
    )
    if not (details.paused or reset):
        return
    if reset:
        await asyncio.to_thread(request.runtime.runs.set_aside, request.order_id, request.key)
    await _end_own_agent(request, RESET if reset else PAUSED)
    if reset:
        message = "Reset: the agent was stopped; the step starts again from its checkpoint."
    else:
        message = "Paused: the agent was stopped, and its session and worktree are kept; unpause to continue."
    pause = ApplicationError(
        message, type="Reset" if reset else "Paused", category=ApplicationErrorCategory.BENIGN
    )
    if unknown:  # the server rejects its token, and would wait for the time-out of its heartbeats
        with suppress(RPCError):
            await activity_handle(activity.client(), request.key).fail(pause)
    raise pause


async def _end_own_agent(request: TurnRequest, why: str) -> None:
    """End the agent of this request, even an agent that is being started at this moment."""
    runs = request.runtime.runs
    bound = time.monotonic() + _END_WITHIN_SECONDS
    while not await asyncio.to_thread(_nobody_writes, request):
        living = await asyncio.to_thread(runs.living, request.order_id)
        if living is not None and living.record is not None:
            if living.record.key != request.key:
                return
            await end_agent(living, why)
        if time.monotonic() > bound:
            raise AgentError(
                f"The writer's lock of {request.order_id} is held, but no agent that could hold it answers."
            )
        await asyncio.sleep(0.02)


def _nobody_writes(request: TurnRequest) -> bool:
    lock = request.runtime.runs.lock_writer(request.order_id)
    if lock is None:
        return False
    os.close(lock)
    return True


class WorkEndedError(Exception):
    """A person has ended the work, and its agent was ended; the message says how the person ended the work."""


class AttemptFailedError(Exception):
    """The attempt failed, and no later attempt can help."""

    def __init__(self, error: SeptetError) -> None:
        super().__init__(error.message)
        self.error = error


@asynccontextmanager
async def guarding(host: Host, prepared_step: PreparedTurn) -> AsyncIterator[None]:
    """Translate errors and cancels of the block; end the attempt's agent unless the agent should continue.

    Raises:
        WorkEndedError: A person has cancelled or closed the work order; the agent was ended.
        AttemptFailedError: No retry can help.
        ApplicationError: Temporal retries later: time helps, or a person has paused or reset this attempt.
        CancelledError: The agent continues, and the next attempt adopts it.
        SupersededError: A later attempt has begun.
    """
    step = prepared_step.request.step
    try:
        yield
    except asyncio.CancelledError:
        why = await why_agent_ends(is_pushed=DELIVERS_CANCELS not in host.serves)
        if why is None:
            await leave_paused_or_reset(prepared_step.request)
            _log.info("attempt_left", step=step)
            raise
        prepared_step.fence.lease.check()
        await end_agents_of(host.runs, prepared_step.workspace)
        raise WorkEndedError(why) from None
    except SupersededError as superseded:
        _log.warning("attempt_superseded", step=step, why=superseded.message)
        raise
    except (SeptetError, OSError) as caught:
        error = diagnosed(caught, host.state.root)
        error = await shielded_thread(host.threads.network, _with_mirror_mended, host, prepared_step.place, error)
        if will_retry(error):
            raise failure(error) from None  # the message is complete, and the server keeps 4 kB of a failure
        raise AttemptFailedError(error) from caught


async def end_agents_of(runs: Runs, workspace: Workspace) -> None:
    """End the agent of a cancelled work order; in a lane, do not end another work order's agent.

    Raises:
        AgentError: The agent could not be ended.
    """
    if workspace.lane:
        living = await asyncio.to_thread(runs.living, workspace.place_id)
        record = living.record if living is not None else None
        if living is not None and (record is None or record.key.workflow_id != workspace.work_order_id):
            return
    await end_all(runs, workspace.place_id, CANCELLED)


def _with_mirror_mended(host: Host, place: Place, error: SeptetError) -> SeptetError:
    """Repair the mirror if its damage may have made the step fail, and return the error to raise.

    Temporal then retries the step, and no agent is paid again.
    """
    mended = MirrorMendedError(f"The mirror was damaged, and has been fetched again. {error.message}")
    is_git = isinstance(error, (GitError, SnapshotError, WorkspaceError))
    if error.retryable or not is_git or not looks_damaged(error.message) or not will_retry(mended):
        return error
    try:
        remote = Remote(place.origin, host.settings.git_env, host.forges.token_for(place.origin))
        mend_mirror(place.mirror, remote, place.base_sha)
    except (SeptetError, OSError) as refusal:
        cause = diagnosed(refusal, host.state.root)
        message = f"{error.message} The mirror could not be fetched again: {cause.message}"
        return cause if cause.retryable else GitError(message, remedy=f"{cause.remedy} {_RETRY}".strip())
    return mended
