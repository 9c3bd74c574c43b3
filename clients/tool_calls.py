"""Shared rules for showing agents' tool calls: which results to omit, and paths relative to the workspace."""

import re
from typing import Final

from septet.contracts.host_files import LogEntry

_DONE: Final = re.compile(
    r"(created|updated|written|edited) successfully|successfully (created|updated|written)", re.IGNORECASE
)
"""The pattern of the result of a successful edit; such a result adds nothing to the call."""
EDITS: Final = frozenset({"Write", "Edit", "Delete"})
"""The tools that change files; codex reports only that a call of these tools completed."""
_WORD: Final = re.compile(r"\S++")
_WORKSPACES: Final = "/workspaces/"
"""The part of agents' paths that is the same on every host."""


def only_confirms(entry: LogEntry) -> bool:
    """Return whether an entry is a tool's result that only confirms the write of a file."""
    first = entry.text.strip().partition("\n")[0]
    is_done = first == "completed" and entry.tool in EDITS
    return entry.kind == "tool_result" and (is_done or _DONE.search(first) is not None)


def without_workspace(text: str) -> str:
    """Return a text with paths relative to the workspace."""
    return _WORD.sub(_inside, text) if _WORKSPACES in text else text


def _inside(word: re.Match[str]) -> str:
    """Return a word without the part from the first slash up to and including the workspace's folder."""
    before, _, path = word[0].rpartition(_WORKSPACES)
    place, slash, inside = path.partition("/")
    return before.partition("/")[0] + inside if place and slash else word[0]
