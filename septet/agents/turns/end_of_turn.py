"""The end of a turn: end agents, record the ends of dead runs, and return the error for a failed run."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.endings import OTHER_DIALECT, RESTARTED, SILENT
from septet.agents.outcomes.outcome import ExitRecord, Outcome
from septet.agents.processes.process_tree import identity
from septet.agents.proxy.model_port import OPENS
from septet.agents.runs.folders import Run, Runs
from septet.agents.runs.logs import refused_requests
from septet.agents.runs.records import StartReason
from septet.agents.sandbox.connections import await_sweep, end_agent
from septet.agents.sandbox.supervisors import sweep_leftovers
from septet.agents.turns.warm import end_warm
from septet.errors import (
    AgentApiError,
    AgentApiUnavailableError,
    AgentCrashedError,
    AgentError,
    AgentGaveUpError,
    AgentLimitError,
    AgentMissingError,
    AgentRefusedError,
    WorkspaceBusyError,
)
from septet.system.durable import close_after, lock_is_held, read_struct

_RECORD_SECONDS: Final = 10.0
"""The seconds to wait for a supervisor to record the end of its agent; a disk may be slow."""


def finalize_run(run: Run, within_seconds: float = _RECORD_SECONDS) -> None:
    """Make sure that the end of a run is recorded; wait for a living supervisor to write the record.

    For a dead supervisor, kill leftover processes and write the record.

    Raises:
        WorkspaceBusyError: The run's supervisor lives, and has not written the record within `within_seconds`.
        AgentCrashedError: The runner, which has to kill the leftover processes, does not answer.
    """
    if run.await_exit(within_seconds) is None and run.lives():
        raise WorkspaceBusyError(
            f"The supervisor of {run.folder} has not written yet how its agent ended.",
            remedy=f"Wait for its disk, or kill the supervisor that {run.folder / 'lock'} names.",
            retry_after_seconds=5.0,
        )
    if run.exit() is None:
        if run.runner is not None:
            await_sweep(run.runner.parent)
        if run.record is not None:
            sweep_leftovers(run.record.mark, run.folder)
        close_as_lost(run)


class _Home(msgspec.Struct):
    """Where a run's supervisor was started: the ids of boot and PID namespace, from the run's lock file."""

    boot_id: str
    pid_namespace: str


def close_as_lost(run: Run) -> None:
    """Record that nobody saw the end of a run, and whether its machine or container has ended."""
    why = RESTARTED if _was_elsewhere(run) else ""
    run.put("exit.json", msgspec.json.encode(ExitRecord(cause="lost", why=why)))


def _was_elsewhere(run: Run) -> bool:
    """Return whether the run's machine, container or runner has ended or restarted since the run began."""
    if run.runner is not None:
        return not lock_is_held(run.runner) or _changed_at(run.runner) > _changed_at(run.folder / "lock")
    home = read_struct(run.folder / "lock", _Home)
    if home is None:
        return False
    here = identity(os.getpid())
    return (home.boot_id, home.pid_namespace) != (here["boot_id"], here["pid_namespace"])


def _changed_at(path: Path) -> int:
    """Return the time of a file's last change in nanoseconds; 0 for a missing file."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def sweep_order(runs: Runs, order_id: str) -> None:
    """Record the ends of a work order's dead runs; do nothing while another attempt holds the writer's lock.

    Raises:
        AgentCrashedError: The runner, which has to kill leftover processes, does not answer.
    """
    lock = runs.lock_writer(order_id)
    if lock is None:
        return
    with close_after(lock):
        finalize_runs(runs, order_id)


def finalize_runs(runs: Runs, order_id: str) -> None:
    """Record the ends of a work order's dead runs; the caller holds the writer's lock.

    Raises:
        AgentCrashedError: The runner, which has to kill leftover processes, does not answer.
    """
    for run in runs.lately(order_id):
        if run.has_started:
            with suppress(WorkspaceBusyError):  # its supervisor lives, and will write the record itself
                finalize_run(run)


async def end_all(runs: Runs, order_id: str, why: str) -> None:
    """End a work order's running agent and warm process, and record the ends of dead runs.

    Raises:
        AgentError: The agent could not be ended.
    """
    living = await asyncio.to_thread(runs.living, order_id)
    if living is not None:
        await end_agent(living, why)
    await asyncio.to_thread(end_warm, runs, order_id, why)
    await asyncio.to_thread(sweep_order, runs, order_id)


_RETRY: Final = "Look there for the cause; `septet retry` starts the step again."
_ENDS: Final = (".", "!", "?", ":", "…", "`")
_PROGRAM: Final = "Make sure that the program is installed and executable, then run `septet retry`."
_LONGEST_WAIT_SECONDS: Final = 900.0


def failure_of(
    outcome: Outcome, run: Run, starts: Sequence[StartReason], *, crashed_again: bool = False
) -> AgentError:
    """Return the error that reports a failed outcome of a run.

    For each `waited` in `starts`, the wait before a retry doubles. If `crashed_again`, there is no further retry.
    """
    words = outcome.message.rstrip()
    message = f"{words}{'' if words.endswith(_ENDS) else '.'} The run's files are in {run.folder}."
    remedy = f"{_open_requests(run)}{outcome.remedy or _remedy_by_hand(outcome, run) or _RETRY}"
    if outcome.retryable and not crashed_again:
        wait = outcome.retry_after_seconds or 1.0
        if not outcome.retry_is_named:
            wait = min(wait * 2 ** min(starts.count("waited"), 10), max(_LONGEST_WAIT_SECONDS, wait))
        kind = AgentApiUnavailableError if outcome.ended == "api_error" else AgentCrashedError
        error = kind(message, remedy="Septet tries again automatically.", retry_after_seconds=wait)
        if isinstance(error, AgentApiUnavailableError):
            error.is_usage_limit = outcome.kind == "rate_limit"
        return error
    if crashed_again:
        history = f"The agent was started {len(starts)} times, and ended each time without a result. {message}"
        return AgentGaveUpError(history, remedy=remedy)
    if outcome.ended == "api_error":
        refused = AgentApiError(message, remedy=remedy)
        refused.may_be_of_session = outcome.may_be_of_session
        return refused
    if outcome.ended == "limit":
        return AgentLimitError(message, remedy=remedy)
    if outcome.kind == "not_started":
        program = run.record.argv[0] if run.record is not None else "the agent's program"
        return AgentMissingError(f"{program}: {message}", remedy=outcome.remedy or _PROGRAM)
    return AgentRefusedError(message, remedy=remedy)


def _open_requests(run: Run) -> str:
    refused = refused_requests(run)[:5]
    if not refused:
        return ""
    setting = f'{OPENS}="{",".join(refused)}"'
    return (
        f"Its sandbox refused requests to the model: where it needs them, restart the worker with {setting}, "
        "in addition to what is set already. "
    )


def _remedy_by_hand(outcome: Outcome, run: Run) -> str:
    """Return the remedy for a program that printed nothing that Septet understands; otherwise an empty text."""
    if run.record is None or outcome.kind not in {SILENT, OTHER_DIALECT}:
        return ""
    agent, program = run.record.agent, f"`{run.record.argv[0]}`"
    facts = adapter_for(agent).capabilities
    if outcome.kind == OTHER_DIALECT:
        version = f"Septet knows the events of version {facts.tested_version} of {agent}"
        return f"{version}: install it in place of {program}, then run `septet retry`."
    look = f"run {program} in an empty folder, as the worker's user, to see what it says"
    if facts.needs_login:
        files = ", ".join(facts.login_files)
        look = f"its login or its quota may have run out: {look}; its login and its configuration are in {files}"
    return f"{look[0].upper()}{look[1:]}. Then run `septet retry`."
