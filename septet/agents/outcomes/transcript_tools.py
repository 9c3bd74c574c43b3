"""Tools under the names that claude has for them: a person reads the same whichever CLI worked."""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from septet.agents.outcomes.transcript import TranscriptEntry

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
"""What codex reports of a file without its content; anything else is an edit."""
_SHELL: Final = re.compile(r"\S*sh -l?c ")
_PATCHED: Final = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)


def familiar(entry: "TranscriptEntry") -> Iterator["TranscriptEntry"]:
    """Yield an entry with its tool's familiar name; a call that changes several files as a call for each."""
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
    """Return the command of a shell call, without the shell itself."""
    if _SHELL.match(command) is None:
        return command
    try:
        parts = shlex.split(command)
    except ValueError:  # it was cut
        return command
    return parts[2] if len(parts) == 3 else command  # noqa: PLR2004 -- a shell, its option and its script


def _changes(text: str) -> list[dict[str, Any]]:
    try:
        changes = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [change for change in changes if isinstance(change, dict)] if isinstance(changes, list) else []


def _edit(kind: str, path: str, body: str) -> str:
    """Return what a patch does with one file as the arguments of an edit."""
    lines = [line for line in body.split("\n") if line and not line.startswith(("@@", "***"))]
    old, new = ("\n".join(line[1:] for line in lines if line[0] in marks) for marks in ("- ", "+ "))
    change = {"Add": {"content": new}, "Delete": {}}.get(kind, {"old_string": old, "new_string": new})
    return json.dumps({"file_path": path.strip(), **change}, ensure_ascii=False)
