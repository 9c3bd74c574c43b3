"""What holds wherever tool calls of agents are shown: what says nothing new, and paths without the workspace."""

import re
from typing import Final

from septet.contracts.replies import LogEntry

_DONE: Final = re.compile(
    r"(created|updated|written|edited) successfully|successfully (created|updated|written)", re.IGNORECASE
)
"""What edits of files answer: the call before has told the same."""
_ANY_WORKSPACE: Final = re.compile(r"(/[^/\s]+)+/workspaces/[^/\s]+/")
"""What paths of agents begin with, on whatever host."""


def only_confirms(entry: LogEntry) -> bool:
    """Whether an entry is a tool's answer that a file was written: its call has told the same."""
    return entry.kind == "tool_result" and _DONE.search(entry.text.strip().partition("\n")[0]) is not None


def without_workspace(text: str) -> str:
    """Return a text in which the files of a workspace have their paths in the repository."""
    return _ANY_WORKSPACE.sub("", text)
