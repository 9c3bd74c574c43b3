"""The end of a work order's agents: end the living agent, and sweep what killed supervisors left."""

import asyncio
import time
from contextlib import suppress
from typing import Final

from septet.agents.runs.folders import Run, Runs
from septet.agents.sandbox.attachment import end_agent
from septet.agents.sandbox.runner_connection import await_sweep
from septet.agents.sandbox.sweep import sweep_leftovers
from septet.agents.turns.warm import end_warm
from septet.errors import WorkspaceBusyError
from septet.system.durable import close_after

_LOOK_SECONDS: Final = 0.02
_RECORD_SECONDS: Final = 10.0
"""The seconds to wait for a supervisor to write its record after the agent's end; a disk may be slow."""
_AGAIN_SECONDS: Final = 5.0


def finalize_run(run: Run, within_seconds: float = _RECORD_SECONDS) -> None:
    """Wait for a living run's record; for a dead run, sweep leftovers and write the record.

    Raises:
        WorkspaceBusyError: The run's supervisor lives, and has not written the record within `within_seconds`.
        AgentCrashedError: The runner that has to sweep does not answer.
    """
    bound = time.monotonic() + within_seconds
    while run.exit() is None and run.lives():
        if time.monotonic() > bound:
            raise WorkspaceBusyError(
                f"The supervisor of {run.folder} has not written yet how its agent ended.",
                remedy=f"Wait for its disk, or kill the supervisor that {run.folder / 'lock'} names.",
                retry_after_seconds=_AGAIN_SECONDS,
            )
        time.sleep(_LOOK_SECONDS)
    if run.exit() is None:
        if run.runner is not None:
            await_sweep(run.runner.parent)
        if run.record is not None:
            sweep_leftovers(run.record.mark, run.folder)
        run.close_as_lost()


def sweep_order(runs: Runs, order_id: str) -> None:
    """Finalize the dead runs of a work order, unless another attempt holds the writer's lock and does so.

    Raises:
        AgentCrashedError: The runner that has to sweep does not answer.
    """
    lock = runs.lock_writer(order_id)
    if lock is None:
        return
    with close_after(lock):
        finalize_runs(runs, order_id)


def finalize_runs(runs: Runs, order_id: str) -> None:
    """Finalize all started runs of a work order; the caller holds the writer's lock.

    Raises:
        AgentCrashedError: The runner that has to sweep does not answer.
    """
    for run in runs.lately(order_id):
        if run.has_started:
            with suppress(WorkspaceBusyError):  # its supervisor lives, and will write the record itself
                finalize_run(run)


async def end_all(runs: Runs, order_id: str, why: str) -> None:
    """End the agent of a work order, at work or waiting, with all its processes, and sweep leftovers.

    Raises:
        AgentError: The agent could not be ended.
    """
    living = await asyncio.to_thread(runs.living, order_id)
    if living is not None:
        await end_agent(living, why)
    await asyncio.to_thread(end_warm, runs, order_id, why)
    await asyncio.to_thread(sweep_order, runs, order_id)
