"""What holds wherever tool calls of agents are shown: what says nothing new, and paths without the workspace."""

import re
from typing import Final

from septet.contracts.replies import LogEntry

_DONE: Final = re.compile(
    r"(created|updated|written|edited) successfully|successfully (created|updated|written)", re.IGNORECASE
)
"""What edits of files answer: the call before has told the same."""
EDITS: Final = frozenset({"Write", "Edit", "Delete"})
"""Tools that change files; codex tells the end of one without saying which."""
_WORD: Final = re.compile(r"\S++")
_WORKSPACES: Final = "/workspaces/"
"""What paths of agents hold, on whatever host."""


def only_confirms(entry: LogEntry) -> bool:
    """Whether an entry is a tool's answer that a file was written: its call has told the same."""
    first = entry.text.strip().partition("\n")[0]
    is_done = first == "completed" and entry.tool in EDITS
    return entry.kind == "tool_result" and (is_done or _DONE.search(first) is not None)


def without_workspace(text: str) -> str:
    """Return a text in which the files of a workspace have their paths in the repository."""
    return _WORD.sub(_inside, text) if _WORKSPACES in text else text


def _inside(word: re.Match[str]) -> str:
    """Return a word without what stands in it between its first slash and the workspace's own folder."""
    before, _, path = word[0].rpartition(_WORKSPACES)
    place, slash, inside = path.partition("/")
    return before.partition("/")[0] + inside if place and slash else word[0]
