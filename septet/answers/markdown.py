"""Read code blocks and sections of Markdown, by the rules of CommonMark."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """The content of one fenced block."""

    language: str
    """The first word behind the fence; empty without a word."""
    content: str
    """The content, without the line break before the closing fence."""


def code_blocks(text: str) -> tuple[CodeBlock, ...]:
    """Return the fenced blocks in their order, also in lists and quotations."""
    return tuple(
        CodeBlock(language=(token.info.split() or [""])[0], content=token.content.removesuffix("\n"))
        for token in _blocks(text)
        if token.type == "fence"
    )


def section(text: str, heading: str) -> str | None:
    """Return the section under the first heading with this plain text; `None` if the text has no such heading.

    The section ends at the next heading of the same or a higher level. The section is Markdown, without the
    heading and without blank lines around the section. Headings inside lists and quotations open and end no
    sections.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    headings = _headings(text)
    for level, title, (_, first) in headings:
        if title == _squeeze(heading):
            last = next((start for other, _, (start, _) in headings if other <= level), len(lines))
            return "\n".join(lines[first:last]).strip("\n")
    return None


def _blocks(text: str) -> list[Token]:
    """Parse blocks only, because inline markup matters in headings alone; threads must not share a parser."""
    return MarkdownIt("commonmark").disable("inline").parse(text)


def _headings(text: str) -> Iterator[tuple[int, str, tuple[int, int]]]:
    """Yield level, plain text, first line and next line of each heading outside lists and quotations."""
    tokens = _blocks(text)
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open" and opening.level == 0 and opening.map:
            first, after = opening.map
            yield int(opening.tag[1:]), _plain_text(inline), (first, after)


def _plain_text(inline: Token) -> str:
    children = MarkdownIt("commonmark").parseInline(inline.content)[0].children or []
    return _squeeze("".join(" " if child.type == "softbreak" else child.content for child in children))


def _squeeze(text: str) -> str:
    return " ".join(text.split())
