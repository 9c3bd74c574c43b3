"""The progress of a work order: its elapsed time, and its running step."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from septet.contracts.host_files import LogEntry
from septet.contracts.names import Status
from septet.contracts.replies import RUNNING
from septet.contracts.task import Task


def elapsed_seconds(task: Task) -> float:
    """Return the seconds since a work order was created, until now or until it was closed."""
    if not task.created_at:
        return 0.0
    return round(max((_end(task) - datetime.fromisoformat(task.created_at)).total_seconds(), 0.0), 1)


def _end(task: Task) -> datetime:
    """Return when a work order ended; now if it is open. A completed work order ended with its last step."""
    last = task.steps[-1] if task.steps else None
    if task.status is Status.COMPLETED and last is not None and last.ended_at:
        return datetime.fromisoformat(last.ended_at)
    if task.status is Status.COMPLETED and last is not None and last.timestamp:
        return datetime.fromisoformat(last.timestamp) + timedelta(seconds=last.duration_seconds)
    return datetime.fromisoformat(task.updated_at) if task.is_closed and task.updated_at else datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class StepUnderWay:
    """A step that has begun and has not ended."""

    step: str
    standing: str = RUNNING
    """Whether the step runs, waits, or has no worker."""
    tokens: int = 0
    """The tokens of the step's last agent run so far; 0 if this host does not have the run's stream."""
    doing: LogEntry | None = None
    """The agent's tool call that has no result yet."""
