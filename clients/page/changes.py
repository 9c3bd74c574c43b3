"""Prepare changes for a review: a tree of files, and each file's lines with numbers and colours."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

from clients.page.colours import Language, language_of, pieces_of
from clients.patches import PatchFile, PatchLine, files_of
from septet.contracts.replies import ChangedFile

_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_COLOURED_LINES: Final = 2000
"""A longer file is shown without colours: nobody waits for them."""
_COLOURED_CHARACTERS: Final = 100_000
_COLOURED_IN_ALL: Final = 300_000
"""Characters of one review: what comes after is without colours too."""
_COLOURED_LINE: Final = 1000
"""A file with a longer line was written by a program, and nobody reads it for its colours."""
_PLANS: Final = "specs/"


@dataclass(frozen=True, slots=True)
class ReviewLine:
    """One line of a changed file."""

    kind: str
    old: int | None
    new: int | None
    code: Markup
    """Escaped, with its sign, and in colours where the language is known."""


@dataclass(frozen=True, slots=True)
class ReviewFile:
    """One changed file."""

    path: str
    lines: tuple[ReviewLine, ...]
    is_plan: bool


def review_of(patch: str, plan_path: str | None) -> tuple[ReviewFile, ...]:
    """Return the files of a patch: the plan's own last, apart from the work."""
    files, left = [], _COLOURED_IN_ALL
    for file in files_of(patch):
        size = sum(len(line.text) for line in file.lines)
        coloured = _coloured(file) if size <= min(left, _COLOURED_CHARACTERS) else _plain(file)
        left -= size
        files.append(ReviewFile(file.path, tuple(_lines(file, coloured)), is_plan_file(file.path, plan_path)))
    return tuple(sorted(files, key=lambda file: file.is_plan))


def is_plan_file(path: str, plan_path: str | None) -> bool:
    """Return whether a file is a plan, and no part of the work."""
    return path == plan_path or (path.startswith(_PLANS) and path.endswith(".md"))


def folders_of(files: Sequence[ChangedFile]) -> Mapping[str, list[ChangedFile]]:
    """Return files by folder, in order; those of the repository's root first."""
    folders: dict[str, list[ChangedFile]] = {}
    for file in sorted(files, key=lambda file: (file.path.rpartition("/")[0], file.path)):
        folders.setdefault(file.path.rpartition("/")[0], []).append(file)
    return folders


def _lines(file: PatchFile, coloured: Sequence[Markup]) -> Iterator[ReviewLine]:
    old = new = 0
    for line, code in zip(file.lines, coloured, strict=True):
        if line.kind == "place" and (place := _HUNK.match(line.text)):
            old, new = int(place[1]), int(place[2])
            yield ReviewLine("place", None, None, code)
        elif line.kind == "added":
            yield ReviewLine("added", None, new, code)
            new += 1
        elif line.kind == "removed":
            yield ReviewLine("removed", old, None, code)
            old += 1
        elif line.kind == "same":
            yield ReviewLine("same", old, new, code)
            old, new = old + 1, new + 1
        else:
            yield ReviewLine(line.kind, None, None, code)


def _plain(file: PatchFile) -> list[Markup]:
    return [escape(line.text) for line in file.lines]


def _coloured(file: PatchFile) -> list[Markup]:
    plain, language = _plain(file), language_of(file.path)
    longest = max((len(line.text) for line in file.lines), default=0)
    if len(plain) > _COLOURED_LINES or longest > _COLOURED_LINE or language is None:
        return plain
    for kinds in (("added", "same"), ("removed",)):
        numbers = [number for number, line in enumerate(file.lines) if line.kind in kinds]
        for number, code in zip(
            numbers, _colour(language, [file.lines[number] for number in numbers]), strict=True
        ):
            plain[number] = escape(file.lines[number].text[:1]) + code
    return plain


def _colour(language: Language, lines: Sequence[PatchLine]) -> list[Markup]:
    """Return the lines' code, without signs, in colours: read as one text, so that long strings are seen."""
    coloured: list[list[Markup]] = [[] for _ in lines]
    at = 0
    for kind, text in pieces_of(language, "\n".join(line.text[1:] for line in lines)):
        for number, part in enumerate(text.split("\n")):
            at += number > 0
            if part:
                coloured[at].append(_piece(kind, part))
    return [Markup().join(parts) for parts in coloured]


def _piece(kind: str, text: str) -> Markup:
    return Markup('<b class="{}">{}</b>').format(kind, text) if kind else escape(text)
