"""Prepare an agent's log entries for the page: a command as a command, an edit as a diff, the rest unchanged."""

import json
from collections.abc import Mapping
from typing import Final

from clients.patches import PatchLine, difference
from clients.tool_calls import only_confirms, without_workspace
from septet.contracts.replies import LogEntry

_NAMES: Final = (
    "command",
    "file_path",
    "filePath",
    "path",
    "absolute_path",
    "pattern",
    "query",
    "url",
    "description",
)
"""What says best what a call is about, in this order."""
_SHOWN: Final = 120


def heading_of(entry: LogEntry) -> str:
    """Return a tool call's heading, in one line."""
    call = _arguments(entry)
    words = next((str(call[name]) for name in _NAMES if call.get(name)), "") if call else entry.text
    line = without_workspace(" ".join(words.split()))
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def edit_of(entry: LogEntry) -> tuple[PatchLine, ...]:
    """Return an edit as the lines of a diff; nothing for other calls."""
    call = _arguments(entry)
    before, after = call.get("old_string", call.get("oldString")), call.get("new_string", call.get("newString"))
    if before is None and after is None:
        after = call.get("content")
    if not isinstance(after, str):
        return ()
    return tuple(difference(before if isinstance(before, str) else "", after))


def body_of(entry: LogEntry) -> str:
    """Return the rest of a call: its arguments line by line, where they can be read."""
    call = _arguments(entry)
    if not call:
        return entry.text
    if isinstance(command := call.get("command"), str):
        return f"$ {command}"
    return "\n".join(f"{name}: {_text(value)}" for name, value in call.items() if value not in ("", [], None))


def words_of(entry: LogEntry) -> str:
    """Return an agent's message; an answer in JSON line by line."""
    return body_of(entry) if entry.kind == "result" else entry.text


def says_nothing_new(entry: LogEntry) -> bool:
    """Return whether it only hands over the answer, which follows as the result, or confirms what was written."""
    return entry.tool == "StructuredOutput" or only_confirms(entry)


def _arguments(entry: LogEntry) -> Mapping[str, object]:
    if entry.kind not in {"tool_call", "result"} or not entry.text.startswith("{"):
        return {}
    try:
        value = json.loads(entry.text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return "".join(f"\n- {part}" for part in value) if isinstance(value, list) else str(value)
