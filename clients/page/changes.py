"""Changes as people review them: a tree of files, and each file's lines with numbers and colours."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_for_filename
from pygments.token import Comment, Keyword, Name, Number, String, Token
from pygments.util import ClassNotFound

from clients.patches import PatchFile, PatchLine, files_of
from septet.contracts.replies import ChangedFile

_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_COLOURED_LINES: Final = 2000
"""A longer file is shown without colours: nobody waits for them."""
_COLOURED_CHARACTERS: Final = 100_000
_KINDS: Final = (
    (Comment, "c"),
    (String, "s"),
    (Number, "m"),
    (Keyword, "k"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Tag, "k"),
    (Name.Decorator, "f"),
)
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
    files = [
        ReviewFile(file.path, tuple(_lines(file)), is_plan_file(file.path, plan_path)) for file in files_of(patch)
    ]
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


def _lines(file: PatchFile) -> Iterator[ReviewLine]:
    coloured = _coloured(file)
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


def _coloured(file: PatchFile) -> list[Markup]:
    plain = [escape(line.text) for line in file.lines]
    size = sum(len(line.text) for line in file.lines)
    if len(plain) > _COLOURED_LINES or size > _COLOURED_CHARACTERS or (lexer := _lexer(file.path)) is None:
        return plain
    for kinds in (("added", "same"), ("removed",)):
        numbers = [number for number, line in enumerate(file.lines) if line.kind in kinds]
        for number, code in zip(numbers, _colour(lexer, [file.lines[number] for number in numbers]), strict=True):
            plain[number] = escape(file.lines[number].text[:1]) + code
    return plain


def _lexer(path: str) -> Lexer | None:
    try:
        return get_lexer_for_filename(path, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _colour(lexer: Lexer, lines: Sequence[PatchLine]) -> list[Markup]:
    """Return the lines' code, without signs, in colours: read as one text, so that long strings are seen."""
    coloured, at = [Markup()] * len(lines), 0
    for kind, text in lexer.get_tokens("\n".join(line.text[1:] for line in lines)):
        for number, part in enumerate(text.split("\n")):
            at += number > 0
            if part and at < len(coloured):
                coloured[at] += _piece(kind, part)
    return coloured


def _piece(kind: "type[Token]", text: str) -> Markup:
    name = next((name for parent, name in _KINDS if kind in parent), "")
    return Markup('<b class="{}">{}</b>').format(name, text) if name else escape(text)
