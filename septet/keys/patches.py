"""Read the lines that a git patch adds, each with its file and number."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_HUNK: Final = re.compile(rb"@@ -\d+(?:,\d+)? \+(?P<first>\d+)(?:,\d+)? @@")
_FILE: Final = b"diff --git "
_NAME: Final = b"+++ "
MESSAGE: Final = "(the commit's message)"
HEAD: Final = "(the commit's head)"
"""The paths of lines outside files: the commit's message, and its head with author and committer."""
NAME: Final = -1
"""The number that stands for the path of a new file, which is no line but is pushed too."""


@dataclass(frozen=True, slots=True)
class AddedLine:
    """One line that a patch adds."""

    path: str
    """The path relative to the repository's root, with `/`, as git shows it."""
    number: int
    """The number of the line in the new file or the message, from 1; `NAME` for the path of a new file."""
    content: bytes
    commit: str = ""
    """The commit that adds the line; empty before the commit."""


def read_added_lines(patch: bytes, message: bytes = b"", commit: str = "") -> Iterator[AddedLine]:
    """Yield the lines of a message, then the added lines of a patch with the paths of new files, in their order.

    Args:
        patch: Git's output with `--unified=0` and without prefixes, of patches of files alone.
        message: The commit's message.
        commit: The commit of the patch.
    """
    for number, line in enumerate(message.rstrip(b"\n").split(b"\n") if message else (), 1):
        yield AddedLine(MESSAGE, number, line, commit)
    path, number, in_hunk, name = "", 0, False, b""
    for line in patch.split(b"\n"):
        if line.startswith(_FILE):
            path, number, in_hunk = "", 0, False
            name = _same_name(line.removeprefix(_FILE))
        elif line.startswith(b"new file mode ") and not in_hunk:
            yield AddedLine(_shown_path(name), NAME, name, commit)
        elif match := _HUNK.match(line):
            number, in_hunk = int(match["first"]), True
        elif line.startswith(b"+") and in_hunk:
            yield AddedLine(path, number, line[1:], commit)
            number += 1
        elif line.startswith(_NAME):
            path = _shown_path(line.removeprefix(_NAME))


def _same_name(names: bytes) -> bytes:
    """Return the path that the head of a file's patch names twice, with a blank between."""
    return names[: len(names) // 2]


def _shown_path(name: bytes) -> str:
    """Return a path as git shows it, without the tab that git adds behind a path with blanks."""
    return name.rstrip(b"\t").strip(b'"').decode(errors="replace")
