"""Turn an agent's output into messages and actions, in one form for all CLIs."""

import json
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Protocol

from septet.agents.outcomes.stream import EventReader

_NAMES: Final = {
    **dict.fromkeys(("command_execution", "bash", "shell", "run_shell_command"), "Bash"),
    **dict.fromkeys(("file_change", "apply_patch", "edit", "replace", "str_replace_editor"), "Edit"),
    **dict.fromkeys(("write", "write_file", "create"), "Write"),
    **dict.fromkeys(("read", "read_file", "view"), "Read"),
    **dict.fromkeys(("grep", "search_file_content"), "Grep"),
    **dict.fromkeys(("webfetch", "web_fetch"), "WebFetch"),
    **dict.fromkeys(("web_search", "google_web_search"), "WebSearch"),
    "glob": "Glob",
    "todowrite": "TodoWrite",
}
_OF_CHANGE: Final = {"add": "Write", "delete": "Delete"}
"""The tool for each of codex's words for a change of a file; any other word is an edit."""
_SHELL: Final = re.compile(r"\S*sh -l?c ")
_PATCHED: Final = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)


def familiar(entry: "TranscriptEntry") -> Iterator["TranscriptEntry"]:
    """Yield an entry with claude's name for the tool; split a change of several files into several entries."""
    name = _NAMES.get(entry.tool, entry.tool)
    if entry.kind != "tool_call":
        yield replace(entry, tool=name)
    elif entry.tool == "command_execution":
        yield replace(entry, tool=name, text=json.dumps({"command": _script_of(entry.text)}, ensure_ascii=False))
    elif entry.tool == "file_change" and (changes := _changes(entry.text)):
        for change in changes:
            text = json.dumps({"file_path": change.get("path", "")}, ensure_ascii=False)
            yield replace(entry, tool=_OF_CHANGE.get(change.get("kind", ""), name), text=text)
    elif entry.tool == "apply_patch" and (parts := _PATCHED.split(entry.text)[1:]):
        for kind, path, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            yield replace(entry, tool=_OF_CHANGE.get(kind.lower(), name), text=_edit(kind, path, body))
    else:
        yield replace(entry, tool=name)


def _script_of(command: str) -> str:
    if _SHELL.match(command) is None:
        return command
    try:
        parts = shlex.split(command)
    except ValueError:  # the text was cut
        return command
    match parts:
        case [_shell, _option, script]:
            return script
        case _:
            return command


def _changes(text: str) -> list[dict[str, Any]]:
    try:
        changes = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [change for change in changes if isinstance(change, dict)] if isinstance(changes, list) else []


def _edit(kind: str, path: str, body: str) -> str:
    """Return a patch's change of one file as JSON, in the form of an edit tool's arguments."""
    lines = [line for line in body.split("\n") if line and not line.startswith(("@@", "***"))]
    old, new = ("\n".join(line[1:] for line in lines if line[0] in marks) for marks in ("- ", "+ "))
    change = {"Add": {"content": new}, "Delete": {}}.get(kind, {"old_string": old, "new_string": new})
    return json.dumps({"file_path": path.strip(), **change}, ensure_ascii=False)


TranscriptKind = Literal["text", "tool_call", "tool_result", "result", "error"]
"""The kind of an entry: the model's words; a call of a tool; the tool's output; the run's final text; an error."""

NOT_SAID: Final = "The agent reported a failure without a reason."


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One message or action of an agent."""

    kind: TranscriptKind
    text: str
    """The message; for a call, the argument, as JSON if the argument is no string."""
    tool: str = ""
    """The tool of a call or of a call's result, by claude's name for the tool."""


class Transcript(Protocol):
    """Turns the stream of one run into entries for people."""

    def feed(self, chunk: bytes) -> list[TranscriptEntry]:
        """Read the next bytes, which may be cut anywhere, and return the entries in them."""

    def finish(self) -> list[TranscriptEntry]:
        """Return the remaining entries after the end of the stream."""


class EventTranscript(ABC):
    """Turns a stream of JSON lines into entries; a subclass for each CLI knows the CLI's events."""

    def __init__(self) -> None:
        self._new: list[TranscriptEntry] = []
        self._spoke = False
        self._last = ""
        self._tools: dict[str, str] = {}
        self._reader = EventReader(dict[str, Any], lambda event: isinstance(event.get("type"), str))

    @abstractmethod
    def tell(self, event: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield the entries of an event; an event without words or action has none."""

    def begin_call(self, call_id: object, tool: object, arguments: object) -> TranscriptEntry:
        """Return the entry of a tool call, and remember the tool's name for the call's output."""
        name = self._tools[to_text(call_id)] = to_text(tool)
        return TranscriptEntry("tool_call", to_text(arguments), name)

    def end_call(self, call_id: object, output: object) -> TranscriptEntry:
        """Return the entry of a tool call's output."""
        return TranscriptEntry("tool_result", to_text(output), self._tools.pop(to_text(call_id), ""))

    def rest(self) -> Iterator[TranscriptEntry]:
        """Yield the entries that are only known at the end of the stream."""
        return iter(())

    def feed(self, chunk: bytes) -> list[TranscriptEntry]:
        """Read the next bytes, which may be cut anywhere, and return the entries in them."""
        for event in self._reader.feed(chunk):
            self._take(event)
        return self._take_new()

    def finish(self) -> list[TranscriptEntry]:
        """Return the remaining entries after the end; if the stream is one document, these are all entries."""
        rest, document = self._reader.finish()
        for event in rest:
            self._take(event)
        for event in () if self._spoke else document or ():
            self._take(event)
        self._new += self.rest()
        return self._take_new()

    def _take(self, event: dict[str, Any]) -> None:
        self._spoke = True
        told = (entry for entry in self.tell(event) if entry.text or entry.tool)
        self._new += (each for entry in told for each in familiar(entry))

    def _take_new(self) -> list[TranscriptEntry]:
        new, self._new = self._new, []
        return new


def to_text(value: object) -> str:
    """Return a value as text for people: a string as it is, a list of texts joined, any other value as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list):
        texts = [
            block["text"] for block in value if isinstance(block, dict) and isinstance(block.get("text"), str)
        ]
        if texts and len(texts) == len(value):
            return "\n".join(texts)
    return json.dumps(value, ensure_ascii=False)


def to_object(value: object) -> dict[str, Any]:
    """Return `value` if it is an object, and an empty object for any other value."""
    return value if isinstance(value, dict) else {}
