"""Split Markdown into code, HTML tags, hidden parts and prose, by the rules of CommonMark with tables.

A forge neither hides nor obeys text in code. Therefore only text that the forge also reads as code may count as
code. A real parser finds the blocks, and code spans are searched within one paragraph or table cell.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from markdown_it import MarkdownIt

_INLINE: Final = re.compile(r"\\[^\w\s]|`+|<[!?/A-Za-z]")
_RAW: Final = re.compile(r"<[!?/A-Za-z]")
_TICKS: Final = re.compile(r"`+")
_HIDDEN: Final = (("<!--", "-->", 2), ("<![CDATA[", "]]>", 9), ("<?", "?>", 2), ("<!", ">", 2))
"""Parts that a browser never shows: their beginning, their end, and the first position at which the end counts."""
_TAG: Final = re.compile(r"</?[A-Za-z][A-Za-z0-9-]*")
_ATTRIBUTE: Final = re.compile(r"\s+[A-Za-z_:][\w:.-]*(?:\s*=\s*(?:(?P<quote>[\"'])|[^\s\"'=<>`]+))?")
_TAG_END: Final = re.compile(r"\s*/?>")
_AUTOLINK: Final = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]{0,2000}>")
_CELL_END: Final = re.compile(r"(?<=(?<!\\)\|)")
_FOOTNOTE: Final = "[^"
"""How a footnote begins. Forges have footnotes, CommonMark has none; in a footnote, four blanks begin no code."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a Markdown text, and its kind."""

    kind: Literal["prose", "code", "tag", "hidden"]
    text: str


def pieces_of(text: str) -> list[Piece]:
    """Return the pieces of a Markdown text; joined, they give the whole text."""
    pieces: list[Piece] = []
    for kind, part in _regions(text):
        pieces += [Piece("code", part)] if kind == "code" else _pieces_in(part, with_code=kind == "words")
    return [piece for piece in pieces if piece.text]


def _regions(text: str) -> Iterator[tuple[str, str]]:
    """Yield each part of a Markdown text with its kind: `code`, `words` (code may be inline) or `rest`."""
    lines = re.split(r"(?<=\n)", text)
    kinds = _kinds(text)
    number = 0
    while number < len(lines):
        kind, after = kinds.get(number, ("rest", number + 1))
        part = "".join(lines[number:after])
        if kind == "row":
            yield from (("words", cell) for cell in _CELL_END.split(part))
        else:
            yield kind, part
        number = after


def _kinds(text: str) -> dict[int, tuple[str, int]]:
    """Return each block's kind and the line after the block, by the block's first line."""
    kinds: dict[int, tuple[str, int]] = {}
    table_end = 0
    for token in MarkdownIt("commonmark").enable("table").disable("inline").parse(text):
        if token.map is None:
            continue
        first, after = token.map
        if token.type == "table_open":
            table_end = after
            kinds.update({number: ("row", number + 1) for number in range(first, after)})
        elif token.type == "fence" or (token.type == "code_block" and _FOOTNOTE not in text):
            kinds[first] = ("code", after)
        elif token.type == "html_block":
            kinds[first] = ("rest", after)
        elif token.type == "inline" and first >= table_end and after > first:
            kinds[first] = ("words", after)
    return kinds


def _pieces_in(text: str, *, with_code: bool) -> Iterator[Piece]:
    """Yield the pieces of a text that has no blocks of code."""
    runs: dict[int, list[int]] = defaultdict(list)
    for run in _TICKS.finditer(text) if with_code else ():
        runs[len(run[0])].append(run.start())
    missing: set[str] = set()
    begin = at = 0
    while match := (_INLINE if with_code else _RAW).search(text, at):
        piece = _piece_at(text, match, runs, missing)
        at = match.end()
        if piece is not None:
            yield Piece("prose", text[begin : match.start()])
            yield piece
            begin = at = match.start() + len(piece.text)
    yield Piece("prose", text[begin:])


def _piece_at(text: str, match: re.Match[str], runs: dict[int, list[int]], missing: set[str]) -> Piece | None:
    """Return the piece at `match`; if a hidden part lacks its end, such as `-->`, add that end to `missing`."""
    begin, opening = match.start(), match[0]
    if opening[0] == "`":
        ends = runs[len(opening)]
        later = bisect_right(ends, begin)
        return Piece("code", text[begin : ends[later] + len(opening)]) if later < len(ends) else None
    if opening[0] == "\\":
        return None
    for first, last, offset in _HIDDEN:
        if text.startswith(first, begin) and (first != "<!" or text[begin + 2 : begin + 3].isalpha()):
            end = -1 if last in missing else text.find(last, begin + offset)
            if end < 0:
                missing.add(last)
                return None
            return Piece("hidden", text[begin : end + len(last)])
    end = _tag_end(text, begin)
    return Piece("tag", text[begin:end]) if end else None


def _tag_end(text: str, begin: int) -> int:
    """Return where the tag, or the address in angle brackets, at `begin` ends; 0 if there is neither."""
    if link := _AUTOLINK.match(text, begin):
        return link.end()
    name = _TAG.match(text, begin)
    at = name.end() if name else len(text)
    while attribute := _ATTRIBUTE.match(text, at):
        at = attribute.end()
        if quote := attribute["quote"]:
            at = text.find(quote, at) + 1
            if not at:
                return 0
    end = _TAG_END.match(text, at)
    return end.end() if end else 0
