"""What an agent is told when it is not started for the first time."""

from collections.abc import Mapping
from typing import Final

from septet.agents.runs.folders import StartReason
from septet.agents.turns.recovery import Start

_LOOK: Final = "Look at the worktree (`git status`, `git diff`) before you do anything twice."
_GO_ON: Final = "Then go on with the task, and answer in the end exactly as it asks."
_TEXTS: Final[Mapping[StartReason, str]] = {
    "crashed": (
        "The process that carried this conversation ended unexpectedly. A tool call that was under way may have "
        f"had its effect, or a part of it, or none: its outcome is unknown. {_LOOK} {_GO_ON}"
    ),
    "interrupted": f"This conversation was interrupted from outside, and goes on now. {_LOOK} {_GO_ON}",
    "waited": f"The connection to the model failed, and works again. {_LOOK} {_GO_ON}",
    "limit": f"This conversation reached a limit. Finish what is missing, in few steps. {_LOOK} {_GO_ON}",
    "context": (
        "Another conversation on this task became too long and was ended. What it did is in the worktree. "
        f"{_LOOK} Go on from there. The task was:"
    ),
}


def prompt_for(start: Start, prompt: str, *, whole: bool) -> str:
    """Return what the agent is told.

    Args:
        start: Why and how it is started.
        prompt: The step's own prompt.
        whole: Say the prompt again even where its session has heard it.
    """
    anew = start.session_id is None
    note = "" if anew and start.because != "context" else _TEXTS.get(start.because, "")
    if note and not anew and not whole:
        return note
    return f"{note}\n\n{prompt}" if note else prompt
