"""A plan is a text that people can read before they approve it: all of it, and nothing that only programs see."""

from itertools import islice
from typing import Final

from septet.errors import EvidenceError
from septet.git.engine.place import Place
from septet.system.invisible import find_invisible

_LIMIT_BYTES: Final = 1024 * 1024
"""`septet plan` shows no more."""
_SHOWN: Final = 5


def read_plan_text(place: Place, path: str) -> bytes:
    """Return a plan's bytes.

    Args:
        place: The work order's place.
        path: The plan's, proven to be a file inside the worktree.

    Raises:
        EvidenceError: It is too long to be shown, no UTF-8, or has invisible characters; the message names them.
    """
    if any(find_invisible(path)):
        raise EvidenceError(f"{path!r} has invisible characters in its name: give the plan's file another one.")
    with (place.worktree / path).open("rb") as file:
        content = file.read(_LIMIT_BYTES + 1)
    if len(content) > _LIMIT_BYTES:
        raise EvidenceError(f"{path!r} is over 1 MiB, and nobody can read all of it: write a shorter plan.")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise EvidenceError(f"{path!r} is not UTF-8 at byte {error.start}: write it as UTF-8 text.") from error
    found = ((line, column, f"U+{ord(each):04X}") for line, column, each in find_invisible(text))
    if places := [f"line {line}, column {column}: {point}" for line, column, point in islice(found, _SHOWN)]:
        raise EvidenceError(
            f"{path!r} has invisible characters, which nobody sees who approves it: {'; '.join(places)}. Remove "
            "them from the file, or write the code point as text, such as U+200B."
        )
    return content
