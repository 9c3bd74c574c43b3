"""The guard of an attempt: decide what a cancel or an error means for its agent and for the next attempt."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import structlog

from activities.host.cancellation import why_agent_ends
from activities.host.failures import failure, will_retry
from activities.host.host import Host
from activities.turns.pause import leave_paused_or_reset
from activities.turns.prepared_steps import PreparedTurn
from septet.agents.outcomes.endings import CANCELLED
from septet.agents.runs.folders import Runs
from septet.agents.turns.finalize_run import end_all
from septet.contracts.workspace import Workspace
from septet.errors import (
    GitError,
    MirrorMendedError,
    SeptetError,
    SnapshotError,
    SupersededError,
    WorkspaceError,
)
from septet.git.engine.git_words import looks_damaged
from septet.git.engine.place import Place
from septet.system.disk import diagnosed
from septet.system.threads import shielded_thread

_RETRY: Final = "The worktree is kept. Run `septet retry` to continue."

_log = structlog.get_logger()


class WorkEndedError(Exception):
    """A person has ended the work, and its agent has ended; the message says how."""


class AttemptFailedError(Exception):
    """The attempt failed, and no later one can help."""

    def __init__(self, error: SeptetError) -> None:
        super().__init__(error.message)
        self.error = error


@asynccontextmanager
async def guarding(host: Host, prepared_step: PreparedTurn) -> AsyncIterator[None]:
    """Translate a cancel or an error of the block for the agent, the activity and the next attempt.

    Raises:
        WorkEndedError: A person has cancelled or closed the work order; the agent was ended.
        AttemptFailedError: No retry can help.
        ApplicationError: Another attempt follows: time helps, or a person has paused or reset this one.
        CancelledError: The agent continues, and the next attempt finds it.
        SupersededError: A later attempt has begun.
    """
    step = prepared_step.request.step
    try:
        yield
    except asyncio.CancelledError:
        why = await why_agent_ends(is_pushed=host.hears_pushes)
        if why is None:
            await leave_paused_or_reset(prepared_step.request)
            _log.info("attempt_left", step=step)
            raise
        prepared_step.fence.lease.check()
        await end_agents_of(host.runtime.runs, prepared_step.workspace)
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
    """End the agent of a cancelled work order; in a lane, the agent of another work order continues.

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
    """Mend the mirror if its damage may have failed the step, and return the error that remains.

    Temporal then retries the step, and no agent is paid again.
    """
    mended = MirrorMendedError(f"The mirror was damaged, and has been fetched again. {error.message}")
    is_git = isinstance(error, (GitError, SnapshotError, WorkspaceError))
    if error.retryable or not is_git or not looks_damaged(error.message) or not will_retry(mended):
        return error
    try:
        host.mend_mirror(place)
    except (SeptetError, OSError) as refusal:
        cause = diagnosed(refusal, host.state.root)
        message = f"{error.message} The mirror could not be fetched again: {cause.message}"
        return cause if cause.retryable else GitError(message, remedy=f"{cause.remedy} {_RETRY}".strip())
    return mended
