"""Prepare changes for a review on the page: the files by folder, and lines with numbers and colours."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from keyword import kwlist, softkwlist
from pathlib import PurePosixPath
from typing import Final

from markupsafe import Markup, escape

from clients.patches import PatchFile, PatchLine, files_of
from septet.contracts.host_files import ChangedFile

# Groups are atomic and never possessive: those are matched wrongly by Python 3.11.2, which Debian 12 has.
_BLOCK: Final = r"/\*(?>(?:[^*]++|\*(?!/))*)(?:\*/)?"
_SLASHES: Final = r"//[^\n]*+"
_HASH: Final = r"(?<!\S)#[^\n]*+"
_DASHES: Final = r"--[^\n]*+"
_DOUBLE: Final = r'"(?>(?:[^"\\\n]++|\\.)*)"?'
_SINGLE: Final = r"(?<!\w)'(?>(?:[^'\\\n]++|\\.)*)'?"
_LETTER: Final = r"'(?:[^'\\\n]|\\[^\n]{1,10})'"
_BACKQUOTED: Final = r"`(?>(?:[^`\\]++|\\[\s\S])*)`?"
_TRIPLE: Final = (
    r'"""(?>(?:[^"\\]++|\\[\s\S]|"(?!""))*)(?:""")?' + r"|'''(?>(?:[^'\\]++|\\[\s\S]|'(?!''))*)(?:''')?"
)
_REST: Final = r"(?P<m>(?<!\w)\d[\w.]*+)|(?P<f>@[A-Za-z_][\w.]*+)|(?P<word>[A-Za-z_]\w*+)"
_DEFINING: Final = frozenset({
    "class", "def", "enum", "fn", "fun", "func", "function", "interface", "module", "struct", "trait", "type",
})  # fmt: skip
_WORDS: Final = """
    abstract alignas as assert async auto await bool boolean break byte case catch chan char class const
    constexpr continue crate debugger default defer delegate delete do double dyn else enum event explicit
    export extends extern fallthrough false final finally float fn for foreach friend from func function go
    goto guard if impl implements import in init inline instanceof int interface internal is lambda let lock
    long loop map match mod module move mut namespace native new nil null nullptr of operator out override
    package private protected protocol pub public range readonly ref register return sealed select self short
    signed sizeof static struct super switch synchronized template this throw throws trait transient true try
    type typealias typedef typename typeof undefined union unsafe unsigned use using val var virtual void
    volatile when where while with yield
"""
_SCRIPT_WORDS: Final = """
    alias and begin break case class continue def do done elif else elsif end ensure esac export false fi for
    function if import in include local module next nil not null or repeat require rescue return self set sub
    super then true unless until use when while yield
"""
_QUERY_WORDS: Final = """
    add all alter and as asc begin between by case check column commit constraint create cross default delete
    desc distinct drop else end exists false foreign from full function group having if in index inner insert
    into is join key left like limit local nil not null on or order outer primary references repeat return
    right rollback select set table then true union unique until update values view when where while with
"""


@dataclass(frozen=True, slots=True)
class Language:
    """The tokens and keywords of a family of programming languages."""

    pieces: re.Pattern[str]
    """The pattern of tokens. Its groups are named like the page's CSS classes (`c` comment, `s` string, `m`
    number, `f` name, `k` keyword), or `word`."""
    words: frozenset[str] = frozenset()
    """The language's keywords, in lower case."""


def _language(comments: str, texts: str, words: str) -> Language:
    return Language(re.compile(rf"(?P<c>{comments})|(?P<s>{texts})|{_REST}"), frozenset(words.lower().split()))


_TAGS: Final = Language(re.compile(r"(?P<c><!--(?>(?:[^-]++|-(?!->))*)(?:-->)?)|(?P<k></?[A-Za-z][\w:.-]*+)"))
_LANGUAGES: Final = {
    "c cc cpp cs cxx gradle h hh hpp hxx java kt kts m mm proto rs scala swift zig": _language(
        f"{_SLASHES}|{_BLOCK}", f"{_DOUBLE}|{_LETTER}", _WORDS
    ),
    "cjs cts dart go groovy js json5 jsonc jsx mjs mts php ts tsx": _language(
        f"{_SLASHES}|{_BLOCK}", f"{_DOUBLE}|{_SINGLE}|{_BACKQUOTED}", _WORDS
    ),
    "css less scss": _language(_BLOCK, f"{_DOUBLE}|{_SINGLE}", ""),
    "py pyi": _language(
        r"#[^\n]*+", f"{_TRIPLE}|{_DOUBLE}|'(?>(?:[^'\\\\\\n]++|\\\\.)*)'?", " ".join((*kwlist, *softkwlist))
    ),
    "bash cfg conf dockerfile ex exs ini jl makefile mk nix pl pm r rake rb sh tf toml yaml yml zsh": _language(
        _HASH, f"{_DOUBLE}|{_SINGLE}", _SCRIPT_WORDS
    ),
    "elm hs lua sql": _language(f"{_DASHES}|{_BLOCK}", f"{_DOUBLE}|{_SINGLE}", _QUERY_WORDS),
    "json": _language(r"(?!)", _DOUBLE, "false null true"),
    "htm html svg vue xhtml xml": _TAGS,
}
"""The languages, by the suffix of a file or by its whole name, in lower case."""
LANGUAGES: Final = {name: language for names, language in _LANGUAGES.items() for name in names.split()}


def language_of(path: str) -> Language | None:
    """Return the language of a file; `None` if the file's name has no known language."""
    file = PurePosixPath(path.lower())
    return LANGUAGES.get(file.suffix.removeprefix(".") or file.name)


def pieces_of(language: Language, code: str) -> Iterator[tuple[str, str]]:
    """Split code, and yield each piece as CSS class and text; the class is empty for a piece without a colour."""
    at, before = 0, ""
    for piece in language.pieces.finditer(code):
        kind, text = piece.lastgroup or "", piece[0]
        if kind == "word":
            known = text.lower() in language.words
            kind, before = "k" if known else "f" if before in _DEFINING else "", text
        if kind:
            yield "", code[at : piece.start()]
            yield kind, text
            at = piece.end()
    yield "", code[at:]


_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_COLOURED_LINES: Final = 2000
"""The most lines of a file that gets colours; the colours of a longer file would take too long."""
_COLOURED_CHARACTERS: Final = 100_000
_COLOURED_IN_ALL: Final = 300_000
"""The most characters of one review that get colours; later files have none."""
_COLOURED_LINE: Final = 1000
"""The most characters of a line in a file that gets colours: people do not write files with longer lines."""


@dataclass(frozen=True, slots=True)
class ReviewLine:
    """One line of a changed file, with its old and its new number."""

    kind: str
    old: int | None
    new: int | None
    code: Markup
    """The escaped code with the line's sign, in colours if the language is known."""


@dataclass(frozen=True, slots=True)
class ReviewFile:
    """One changed file in a review, and whether it is a plan."""

    path: str
    lines: tuple[ReviewLine, ...]
    is_plan: bool


def review_of(patch: str, plan_path: str | None) -> tuple[ReviewFile, ...]:
    """Return the files of a patch; plans come last."""
    files, left = [], _COLOURED_IN_ALL
    for file in files_of(patch):
        size = sum(len(line.text) for line in file.lines)
        coloured = _coloured(file) if size <= min(left, _COLOURED_CHARACTERS) else _plain(file)
        left -= size
        files.append(ReviewFile(file.path, tuple(_lines(file, coloured)), is_plan_file(file.path, plan_path)))
    return tuple(sorted(files, key=lambda file: file.is_plan))


def is_plan_file(path: str, plan_path: str | None) -> bool:
    """Return whether a file is a plan, which is not part of the work."""
    return path == plan_path or (path.startswith("specs/") and path.endswith(".md"))


def folders_of(files: Sequence[ChangedFile]) -> Mapping[str, list[ChangedFile]]:
    """Return the files by folder, sorted; the files of the repository's root come first."""
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
        coloured = _colour(language, [file.lines[number] for number in numbers])
        for number, code in zip(numbers, coloured, strict=True):
            plain[number] = escape(file.lines[number].text[:1]) + code
    return plain


def _colour(language: Language, lines: Sequence[PatchLine]) -> list[Markup]:
    """Return each line's code in colours, without its `+` or `-`; a string may extend over several lines."""
    coloured: list[list[Markup]] = [[] for _ in lines]
    at = 0
    for kind, text in pieces_of(language, "\n".join(line.text[1:] for line in lines)):
        for number, part in enumerate(text.split("\n")):
            at += number > 0
            if part:
                piece = Markup('<b class="{}">{}</b>').format(kind, part) if kind else escape(part)
                coloured[at].append(piece)
    return [Markup().join(parts) for parts in coloured]
