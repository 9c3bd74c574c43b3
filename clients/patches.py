"""Split a git patch into files and lines, so that people can read the patch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

_FILE: Final = "diff --git "
_HEADERS: Final = ("index ", "--- ", "+++ ", "similarity index ", "new file mode ", "rename from ")
"""The beginnings of git's lines that are not shown, because the file's heading and the colours show the same."""

LineKind = Literal["added", "removed", "place", "note", "same"]


@dataclass(frozen=True, slots=True)
class PatchLine:
    """One line of a patch; `text` includes the line's sign, such as `+`."""

    kind: LineKind
    text: str


@dataclass(frozen=True, slots=True)
class PatchFile:
    """The part of a patch that is about one file."""

    path: str
    lines: tuple[PatchLine, ...]


def files_of(patch: str) -> tuple[PatchFile, ...]:
    """Split a git patch by file, and return the parts. The patch may be cut off anywhere."""
    if not patch.startswith(_FILE):
        return ()
    files = []
    for part in patch.removeprefix(_FILE).split(f"\n{_FILE}"):
        names, *lines = part.rstrip("\n").split("\n")
        files.append(PatchFile(_path(names, lines), tuple(_lines(lines))))
    return tuple(files)


def difference(before: str, after: str) -> Iterator[PatchLine]:
    """Yield the lines of a simple diff: all lines between the common beginning and the common end have changed."""
    old, new = before.splitlines(), after.splitlines()
    most = min(len(old), len(new))
    head = next((at for at in range(most) if old[at] != new[at]), most)
    tail = next((at for at in range(most - head) if old[-1 - at] != new[-1 - at]), most - head)
    yield from (PatchLine("same", f" {line}") for line in old[:head])
    yield from (PatchLine("removed", f"-{line}") for line in old[head : len(old) - tail])
    yield from (PatchLine("added", f"+{line}") for line in new[head : len(new) - tail])
    yield from (PatchLine("same", f" {line}") for line in old[len(old) - tail :])


def _path(names: str, lines: list[str]) -> str:
    for mark in ("+++ b/", "rename to ", "--- a/"):
        if header := next((line for line in lines[:8] if line.startswith(mark)), None):
            return header.removeprefix(mark).rstrip("\t")
    return names.rpartition(" b/")[2]


def _lines(lines: list[str]) -> Iterator[PatchLine]:
    """Yield the lines of one file's patch with their kinds; git's lines before the first `@@` count as notes."""
    kinds: dict[str, LineKind] = {"+": "added", "-": "removed", "@": "place"}
    in_hunk = False
    for line in lines:
        in_hunk = in_hunk or line.startswith("@@")
        if in_hunk:
            yield PatchLine(kinds.get(line[:1], "same"), line)
        elif not line.startswith(_HEADERS):
            yield PatchLine("note", line)
