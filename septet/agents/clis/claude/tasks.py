"""claude's background tasks: while a task is open a result is interim, and the CLI continues after it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec

from septet.agents.outcomes.outcome import WaitsFor
from septet.system.masking import mask

_COMMAND: Final = "local_bash"
_OVER: Final = frozenset({"completed", "failed", "stopped", "killed"})
_STOPPED: Final = frozenset({"stopped", "killed"})
_TASKS_SHOWN: Final = 5
_WORDS_SHOWN: Final = 80


class TaskFields(msgspec.Struct, gc=False):
    """What events report of tasks: a task begins, changes or ends; or the list of open background tasks."""

    task_id: Any = None
    task_type: Any = None
    description: Any = None
    is_backgrounded: Any = None
    """Absent in 2.1.197, whose tasks in the foreground are over before a result."""
    ambient: Any = None
    """A task of the CLI's own, such as a watcher, for which no process waits."""
    status: Any = None
    patch: Any = None
    tasks: Any = None


class _Task(NamedTuple):
    kind: str
    words: str


@dataclass(slots=True)
class BackgroundTasks:
    """The background tasks of a session, and the fate of the tasks that were open at its last result."""

    _open: dict[str, _Task] = field(default_factory=dict)
    _left: dict[str, _Task] = field(default_factory=dict)
    """The tasks that were open at the last result."""
    _stopped: dict[str, _Task] = field(default_factory=dict)
    """The tasks among them that the CLI reports as stopped."""

    def take(self, subtype: object, event: TaskFields) -> None:
        """Take an event of the system's."""
        task_id, patch = str(event.task_id), event.patch if isinstance(event.patch, dict) else {}
        if subtype == "background_tasks_changed" and isinstance(event.tasks, list):
            listed = [task for task in event.tasks if isinstance(task, dict) and task.get("ambient") is not True]
            self._open = {
                str(task.get("task_id")): _Task(str(task.get("task_type")), _words(task.get("description")))
                for task in listed
            }
        elif subtype == "task_started" and event.is_backgrounded is not False and event.ambient is not True:
            self._open[task_id] = _Task(str(event.task_type), _words(event.description))
        elif subtype == "task_updated" and patch.get("is_backgrounded") is True:
            self._open.setdefault(task_id, _Task("", task_id))
        elif subtype in ("task_updated", "task_notification"):
            self._close(task_id, str(patch.get("status") or event.status))

    def take_result(self) -> None:
        """Record the open tasks at a result: the last result covers everything before it."""
        self._left, self._stopped = dict(self._open), {}

    @property
    def waits_for(self) -> WaitsFor:
        """What the CLI waits for after its last result; it continues when a task ends."""
        if self._stopped:
            return ""
        if self._open:
            return "commands" if all(task.kind == _COMMAND for task in self._open.values()) else "tasks"
        return "tasks" if self._left else ""

    def missing_work(self, *, ended_by_itself: bool) -> str:
        """Name the work that is missing: tasks other than commands that are open, and those that the CLI stopped.

        A command that was stopped because the CLI itself had to end is none.
        """
        stopped = (task for task in self._stopped.values() if ended_by_itself or task.kind != _COMMAND)
        return _names((*stopped, *(task for task in self._open.values() if task.kind != _COMMAND)))

    @property
    def commands(self) -> str:
        """Name the commands that ran until the CLI ended."""
        tasks = (*self._stopped.values(), *self._open.values())
        return _names(task for task in tasks if task.kind == _COMMAND)

    def _close(self, task_id: str, status: str) -> None:
        if status in _OVER:
            task = self._open.pop(task_id, None) or self._left.get(task_id)
            if task is not None and task_id in self._left and status in _STOPPED:
                self._stopped[task_id] = task


def _words(description: object) -> str:
    return mask(" ".join(str(description or "a task").split()))[:_WORDS_SHOWN]


def _names(tasks: Iterable[_Task]) -> str:
    return ", ".join(task.words for task in list(tasks)[:_TASKS_SHOWN])
