"""What this host's disk knows of a work order's agent runs."""

from clients.lanes_on_disk import runs_everywhere
from septet.agents.runs.folders import Run
from septet.contracts.replies import AgentRun
from septet.state import StateDir


def runs_of(state: StateDir, order_id: str) -> tuple[AgentRun, ...]:
    """Return the agent runs of a work order that this host kept, oldest first; none on another host.

    Raises:
        InvalidInputError: No work order can have that id.
    """
    return tuple(_told(run) for run in started_runs(state, order_id))


def started_runs(state: StateDir, order_id: str) -> list[Run]:
    """Return the runs themselves, oldest first: those whose record can be read.

    Raises:
        InvalidInputError: No work order can have that id.
    """
    return [run for run in runs_everywhere(state, order_id) if run.record is not None]


def _told(run: Run) -> AgentRun:
    record, end = run.record, run.exit()
    return AgentRun(
        run=run.folder.name,
        step=record.step if record is not None else None,
        agent=record.agent if record is not None else None,
        session_id=record.session_id if record is not None else None,
        started_at=record.started_at if record is not None else None,
        ended_at=end.ended_at if end is not None else None,
        exit_code=end.exit_code if end is not None else None,
        cause=end.cause if end is not None else None,
        folder=str(run.folder),
    )
