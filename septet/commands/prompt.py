"""The whole prompt of an agent run: the filled command, and what a second try or a resumed session must know."""

from collections.abc import Sequence
from typing import Final

from septet.commands.filler import fill
from septet.commands.loader import Command
from septet.commands.values import Values

_REASON_SHOWN: Final = 4000
"""Characters of one reason: an agent's own words or the end of a failing check's output."""


def prompt(command: Command, values: Values, *notes: str) -> str:
    """Return what the agent reads on its stdin: the filled command, then each of `notes` that is not empty.

    A coding agent takes a prompt that begins with `/` for a command of its own; such a text gets a heading first.

    Raises:
        CommandError: A placeholder has no value.
    """
    filled = fill(command, values.arguments, values.named)
    if filled.lstrip().startswith("/"):
        filled = f"# {command.name}\n\n{filled}"
    return "\n\n".join([filled.rstrip("\n"), *(note.rstrip("\n") for note in notes if note)]) + "\n"


def retry_note(reasons: Sequence[str]) -> str:
    """Return the paragraph of a second try: why the first one was not accepted. Each reason's end is kept."""
    listed = "\n".join(f"- {_indented(reason[-_REASON_SHOWN:].strip())}" for reason in reasons)
    return f"""\
## This is the second try

The first try was not accepted:

{listed or "- It gave no answer that could be used."}

The files that it changed are still in the working tree. Look at them first: keep what is right, correct what is
wrong. Then answer as described above. There is no third try.
"""


def _indented(reason: str) -> str:
    return reason.replace("\n", "\n  ")
