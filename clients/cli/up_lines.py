"""The output of `septet up`: a line for each work order that begins, waits for a person, or ends."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from clients.cli.wrapping import say
from clients.operations import Operations
from septet.contracts.names import Status
from septet.contracts.task import Task
from septet.errors import SeptetError
from septet.system.preview import preview

_CLOCK: Final = len("00:00:00  ")
_LOOK_SECONDS: Final = 1.0
_AT_ONCE: Final = 200


class WorkOrderLines:
    """The lines on work orders, each printed once."""

    def __init__(self, since: datetime) -> None:
        """Begin at a moment: what had ended by then is no news."""
        self._since = since
        self._statuses: dict[str, Status] = {}
        self._questions: dict[str, str] = {}

    def new_lines(self, tasks: Iterable[Task]) -> Iterator[str]:
        """Yield a line for each work order that is not as it was at the last look, oldest first."""
        for task in sorted(tasks, key=lambda task: task.created_at):
            before, self._statuses[task.id] = self._statuses.get(task.id), task.status
            is_old = before is None and task.is_closed and self._is_before(task.updated_at)
            question, self._questions[task.id] = self._questions.get(task.id, ""), task.question
            if before is not task.status and not is_old and (line := _line(task)):
                yield line
            elif before is task.status and task.question and task.question != question:
                yield f"{task.id} is waiting: {task.question}{_title(task, '  ({})')}"

    def _is_before(self, moment: str) -> bool:
        return not moment or datetime.fromisoformat(moment) < self._since


def begin_lines() -> WorkOrderLines:
    """Return the lines of what ends from now on."""
    return WorkOrderLines(datetime.now(UTC))


async def print_lines(operations: Operations, lines: WorkOrderLines) -> None:
    """Print what becomes of the work orders of the last day and of all open ones, until this is cancelled."""
    while True:
        with suppress(SeptetError):
            recent, open_ones = await asyncio.gather(
                operations.orders.list(within=timedelta(days=1), limit=_AT_ONCE),
                operations.orders.list(is_open=True, limit=_AT_ONCE),
            )
            tasks = {task.id: task for task in (*recent.tasks, *open_ones.tasks)}
            for line in lines.new_lines(tasks.values()):
                say(f"{datetime.now().astimezone():%H:%M:%S}  {line}", indent=_CLOCK)
        await asyncio.sleep(_LOOK_SECONDS)


def _line(task: Task) -> str:
    """Return what became of a work order; its title stands behind what is to be copied."""
    if task.status in {Status.PENDING, Status.RUNNING}:
        place = "is running" if task.status is Status.RUNNING else "is on the board"
        return f"{task.id} {place}{_title(task, ': {}')}"
    return f"{_outcome(task)}{_title(task, '  ({})')}"


def _title(task: Task, form: str) -> str:
    return form.format(preview(task.title, limit=60)) if task.title else ""


def _outcome(task: Task) -> str:
    match task.status:
        case Status.WAITING if task.waits_for_a_decision:
            return f"{task.id} is waiting for your approval: septet approve {task.id}"
        case Status.WAITING:
            return f"{task.id} is waiting: {task.question or f'septet show {task.id}'}"
        case Status.COMPLETED if task.has_plan_alone:
            return f"{task.id} has its plan: septet plan {task.id}, and septet retry {task.id} continues with it"
        case Status.COMPLETED:
            return f"{task.id} is completed: {task.pr_url or f'septet show {task.id}'}"
        case Status.FAILED:
            return f"{task.id} failed: septet show {task.id}"
        case _:
            return f"{task.id} was cancelled"
