"""The events of claude: the fields that Septet reads, and claude's background tasks.

While a background task is open, the CLI continues after it has printed a result.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec

from septet.agents.outcomes.outcome import WaitsFor
from septet.system.masking import mask

_COMMAND: Final = "local_bash"


class TaskFields(msgspec.Struct, gc=False):
    """The fields of events that report a task's start, change or end, or that list the open background tasks."""

    task_id: Any = None
    task_type: Any = None
    description: Any = None
    is_backgrounded: Any = None
    """Whether the task runs in the background; missing in 2.1.197, whose foreground tasks end before a result."""
    ambient: Any = None
    """Whether the CLI itself made the task, for example to watch a file; nothing waits for such a task."""
    status: Any = None
    patch: Any = None
    tasks: Any = None


class _Task(NamedTuple):
    kind: str
    words: str


@dataclass(slots=True)
class BackgroundTasks:
    """The background tasks of a session, and the fate of tasks that were open at the last result."""

    _open: dict[str, _Task] = field(default_factory=dict)
    _left: dict[str, _Task] = field(default_factory=dict)
    """The tasks that were open at the last result."""
    _stopped: dict[str, _Task] = field(default_factory=dict)
    """The tasks that were open at the last result, and that the CLI has reported as stopped."""

    def take(self, subtype: object, event: TaskFields) -> None:
        """Update the tasks from a system event of claude."""
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
        """Record which tasks are open at a new result, in place of the record for the result before it."""
        self._left, self._stopped = dict(self._open), {}

    @property
    def waits_for(self) -> WaitsFor:
        """The kind of tasks for which the CLI waits after its last result; empty if it waits for none."""
        if self._stopped:
            return ""
        if self._open:
            return "commands" if all(task.kind == _COMMAND for task in self._open.values()) else "tasks"
        return "tasks" if self._left else ""

    def missing_work(self, *, ended_by_itself: bool) -> str:
        """Return the names of the tasks that the CLI has stopped or left open; open shell commands are left out.

        If the CLI has not `ended_by_itself`, stopped shell commands are left out too.
        """
        stopped = (task for task in self._stopped.values() if ended_by_itself or task.kind != _COMMAND)
        return _names((*stopped, *(task for task in self._open.values() if task.kind != _COMMAND)))

    @property
    def commands(self) -> str:
        """The names of the background shell commands that did not finish before the CLI ended."""
        tasks = (*self._stopped.values(), *self._open.values())
        return _names(task for task in tasks if task.kind == _COMMAND)

    def _close(self, task_id: str, status: str) -> None:
        if status in {"completed", "failed", "stopped", "killed"}:
            task = self._open.pop(task_id, None) or self._left.get(task_id)
            if task is not None and task_id in self._left and status in {"stopped", "killed"}:
                self._stopped[task_id] = task


def _words(description: object) -> str:
    return mask(" ".join(str(description or "a task").split()))[:80]


def _names(tasks: Iterable[_Task]) -> str:
    return ", ".join(task.words for task in list(tasks)[:5])


_NOTHING: Final = msgspec.Raw()
_NOTES_KEPT: Final = 20


class MessageTokens(msgspec.Struct, gc=False):
    """The numbers of tokens of a message or a result."""

    input_tokens: Any = 0
    output_tokens: Any = 0
    cache_read_input_tokens: Any = 0
    cache_creation_input_tokens: Any = 0


class Block(msgspec.Struct, gc=False):
    """A block of a message: a text, a tool call, or a tool's result."""

    type: Any = None
    text: msgspec.Raw = _NOTHING
    is_error: Any = None
    content: msgspec.Raw = _NOTHING


class Message(msgspec.Struct, gc=False):
    """A message of the model or of a tool."""

    id: Any = None
    model: Any = None
    usage: MessageTokens | None = None
    content: list[Block] | str | None = None
    stop_reason: Any = None


class Event(TaskFields, gc=False):
    """The fields that are read from an event of any type; other fields are skipped."""

    type: Any = None
    subtype: Any = None
    session_id: Any = None
    parent_tool_use_id: Any = None
    model: Any = None
    message: Message | str | None = None
    is_error: Any = None
    result: msgspec.Raw = _NOTHING
    structured_output: msgspec.Raw = _NOTHING
    errors: msgspec.Raw = _NOTHING
    usage: msgspec.Raw = _NOTHING
    num_turns: Any = None
    total_cost_usd: Any = None
    model_usage: msgspec.Raw = msgspec.field(name="modelUsage", default=_NOTHING)
    model_usage_since_last_result: msgspec.Raw = _NOTHING
    permission_denials: msgspec.Raw = _NOTHING
    api_error_status: Any = None
    error: Any = None
    stop_reason: Any = None
    terminal_reason: Any = None
    tool_name: Any = None
    mcp_servers: msgspec.Raw = _NOTHING
    content: Any = None
    rate_limit_info: msgspec.Raw = _NOTHING

    @property
    def name(self) -> str:
        """The event's type, with its subtype if it has one."""
        return "/".join(part for part in (self.type, self.subtype) if isinstance(part, str))

    @property
    def has_failed(self) -> bool:
        """Whether a result reports a failure: its `is_error` is true, or its subtype is an error."""
        return self.is_error not in (None, False) or str(self.subtype).startswith("error")


class ModelUse(msgspec.Struct, gc=False):
    """The usage of one model in a result."""

    cost: Any = msgspec.field(name="costUSD", default=0.0)
    input_tokens: Any = msgspec.field(name="inputTokens", default=0)
    output_tokens: Any = msgspec.field(name="outputTokens", default=0)
    cache_read_tokens: Any = msgspec.field(name="cacheReadInputTokens", default=0)
    cache_write_tokens: Any = msgspec.field(name="cacheCreationInputTokens", default=0)


class _Denial(msgspec.Struct, gc=False):
    tool_name: Any = None
    tool_input: Any = None


class _McpServer(msgspec.Struct, gc=False):
    name: Any = None
    status: Any = None


class _RateLimit(msgspec.Struct, gc=False):
    status: Any = None
    resets_at: Any = msgspec.field(name="resetsAt", default=None)
    kind: Any = msgspec.field(name="rateLimitType", default=None)


MODELS: Final = msgspec.json.Decoder(dict[str, ModelUse])
SERVERS: Final = msgspec.json.Decoder(list[_McpServer])
RATE_LIMIT: Final = msgspec.json.Decoder(_RateLimit)
DENIALS: Final = msgspec.json.Decoder(list[_Denial])
TOKENS: Final = msgspec.json.Decoder(MessageTokens)
ANYTHING: Final = msgspec.json.Decoder(object)
TEXT: Final = msgspec.json.Decoder(str)
ITEMS: Final = msgspec.json.Decoder(list[object])
