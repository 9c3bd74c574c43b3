"""The whole prompt of an agent: the filled command, and the feedback on earlier work."""

from collections.abc import Sequence
from typing import Final

from septet.commands.filler import fill
from septet.commands.loader import Command
from septet.commands.values import Values

_REASON_SHOWN: Final = 4000
"""The most characters of one reason: an agent's own words or the end of a failing check's output."""
_SECOND_TRY: Final = """\
## This is the second try

The first try was not accepted. What was said of it, and of the work before it:

{reasons}

What it left in the working tree is still there. Look at it first: keep what is right, correct what is wrong. Then
answer as described above. There is no third try.
"""
_SAID_BEFORE: Final = """\
## What was said of the work so far

{reasons}

Heed this in what you do now; where it differs from the text above, do as it says. Work that was done before may be
in the working tree. Look at it first: keep what is right, correct what is wrong. Then answer as described above.
"""


def prompt(command: Command, values: Values, *notes: str) -> str:
    """Return the text for the agent's stdin: the filled command, then each of `notes` that is not empty.

    A coding agent reads a prompt that begins with `/` as its own command, so a heading precedes such a prompt.

    Raises:
        CommandError: A placeholder has no value.
    """
    filled = fill(command, values.arguments, values.by_name)
    if filled.lstrip().startswith("/"):
        filled = f"# {command.name}\n\n{filled}"
    return "\n\n".join([filled.rstrip("\n"), *(note.rstrip("\n") for note in notes if note)]) + "\n"


def step_note(reasons: Sequence[str], attempt: int) -> str:
    """Return the paragraph with the reasons from earlier work; empty without reasons.

    Reasons of a second try explain why the first was not accepted. Reasons of a first try are a person's feedback,
    or a later step's complaint. A long reason keeps its end.
    """
    if not reasons:
        return ""
    lines = "\n".join(f"- {_indent(reason[-_REASON_SHOWN:].strip())}" for reason in reasons)
    return (_SECOND_TRY if attempt > 1 else _SAID_BEFORE).format(reasons=lines)


def _indent(reason: str) -> str:
    return reason.replace("\n", "\n  ")
