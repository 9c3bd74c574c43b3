"""Rules for showing agents' tool calls: which results to omit, and how to shorten paths."""

import re
from typing import Final

from septet.contracts.host_files import LogEntry

_DONE: Final = re.compile(
    r"(created|updated|written|edited) successfully|successfully (created|updated|written)", re.IGNORECASE
)
"""The pattern of a result that only confirms an edit."""
EDITS: Final = frozenset({"Write", "Edit", "Delete"})
"""The tools that change files; for these, codex reports only the result `completed`."""
_WORD: Final = re.compile(r"\S++")
_WORKSPACES: Final = "/workspaces/"
"""The folder that contains all workspaces, as a part of a path."""


def only_confirms(entry: LogEntry) -> bool:
    """Return whether a log entry is a tool's result that only confirms that a file was written."""
    first = entry.text.strip().partition("\n")[0]
    is_done = first == "completed" and entry.tool in EDITS
    return entry.kind == "tool_result" and (is_done or _DONE.search(first) is not None)


def without_workspace(text: str) -> str:
    """Return `text` with each path into a workspace made relative to the workspace."""
    return _WORD.sub(_inside, text) if _WORKSPACES in text else text


def _inside(word: re.Match[str]) -> str:
    """Return the matched word, with a path into a workspace made relative to the workspace."""
    before, _, path = word[0].rpartition(_WORKSPACES)
    place, slash, inside = path.partition("/")
    return before.partition("/")[0] + inside if place and slash else word[0]
