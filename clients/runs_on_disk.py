"""What this host's disk knows of a work order's agent runs."""

from typing import Any

from septet.agents.runs import Run, Runs
from septet.state import StateDir


def runs_of(state: StateDir, order_id: str) -> list[dict[str, Any]]:
    """Return the agent runs of a work order that this host kept, oldest first; none on another host.

    Each is `{run, step, agent, session_id, started_at, ended_at, exit_code, cause, folder}`.

    Raises:
        InvalidInputError: No work order can have that id.
    """
    return [_told(run) for run in started_runs(state, order_id)]


def started_runs(state: StateDir, order_id: str) -> list[Run]:
    """Return the runs themselves, oldest first: those whose record can be read.

    Raises:
        InvalidInputError: No work order can have that id.
    """
    return [run for run in Runs(state.runs).of(order_id) if run.record is not None]


def _told(run: Run) -> dict[str, Any]:
    record, end = run.record, run.exit()
    return {
        "run": run.folder.name,
        "step": record.step if record is not None else None,
        "agent": record.agent if record is not None else None,
        "session_id": record.session_id if record is not None else None,
        "started_at": record.started_at if record is not None else None,
        "ended_at": end.ended_at if end is not None else None,
        "exit_code": end.exit_code if end is not None else None,
        "cause": end.cause if end is not None else None,
        "folder": str(run.folder),
    }
