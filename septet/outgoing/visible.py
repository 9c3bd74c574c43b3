"""The part of a Markdown text that people see; an agent gets only this part."""

import re
from collections.abc import Mapping
from typing import Final

from markdown_it import MarkdownIt

from septet.outgoing.text import (
    prose_characters,
    readable,
    without_fence_words,
    without_hidden,
    without_link_titles,
    without_unseen,
)

_ALT: Final = re.compile(r"!\[(?:[^\[\]\\]|\\.|\[[^\[\]]{0,500}\]){0,10000}\](?=[\[(])", re.DOTALL)
_ALT_ATTRIBUTE: Final = re.compile(r"\salt\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'>]+)", re.IGNORECASE)
_BY_LABEL: Final = re.compile(r"(?P<words>\[[^\[\]]{0,1000}\])\[(?P<label>[^\[\]]{1,1000})\]")
_NEVER_SHOWN: Final = (("<!--", "-->"), ("<?", ">"), ("<![CDATA[", ">"))
_MOST_DEFINITIONS: Final = 1000
"""The most definitions of links that stay."""


def visible_text(text: str) -> str:
    """Return the part of a Markdown text that a forge shows to people; code stays as a page shows it.

    This removes HTML comments, invisible characters, alternative texts of pictures, link titles, and definitions
    of unused links.
    """
    pieces = without_hidden(_without_definitions(readable(text)))
    return "".join(
        without_fence_words(piece.text)
        if piece.kind == "code"
        else _ALT_ATTRIBUTE.sub("", without_unseen(piece.text))
        if piece.kind == "tag"
        else _ALT.sub("![]", without_link_titles(prose_characters(piece.text)))
        for piece in pieces
    ).rstrip()


def visible_line(text: str) -> str:
    """Return the visible part of a title or a name, which is no Markdown."""
    return " ".join(readable(text).split())


def _without_definitions(text: str) -> str:
    """Return a text without unused definitions of links, and without all that an unclosed comment hides."""
    parser = MarkdownIt("commonmark", {"inline_definitions": True}).enable("table").disable("inline")
    lines = text.split("\n")
    definitions: dict[str, tuple[str, str]] = {}
    places: list[tuple[int, int]] = []
    for token in parser.parse(text):
        if token.map is None:
            continue
        if token.type == "definition" and not token.meta["label"].startswith("^"):
            label = token.meta["label"]
            definitions.setdefault(_known_as(label), (label, token.meta["url"]))
            places.append((token.map[0], token.map[1]))
        elif token.type == "html_block" and (place := _endless(token.content)) is not None:
            first = token.map[0] + token.content.count("\n", 0, place)
            lines[first:] = [lines[first].partition(token.content[place : place + 2])[0]]
            break
    if not places:
        return "\n".join(lines)
    for first, after in reversed(places):
        lines[first:after] = [""] if first < len(lines) else []
    rest = _BY_LABEL.sub(lambda match: _with_address(match, definitions), "\n".join(lines))
    lowered, known = rest.lower(), list(definitions.values())[:_MOST_DEFINITIONS]
    return "\n".join((rest, *(f"[{label}]: {url}" for label, url in known if f"[{label.lower()}]" in lowered)))


def _known_as(label: str) -> str:
    return " ".join(label.lower().split())


def _with_address(match: re.Match[str], definitions: Mapping[str, tuple[str, str]]) -> str:
    """Return a link `[words][label]` as `[words](address)`, because no page shows the label."""
    definition = definitions.get(_known_as(match["label"]))
    return match[0] if definition is None else f"{match['words']}({definition[1]})"


def _endless(content: str) -> int | None:
    """Return the position of an unclosed HTML comment or the like, which hides the rest; `None` without one."""
    for begin, end in _NEVER_SHOWN:
        place = content.rfind(begin)
        if place >= 0 and content.find(end, place) < 0:
            return place
    return None
