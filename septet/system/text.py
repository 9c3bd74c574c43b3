"""Cut texts to a limit, on one line and without control characters; an ellipsis marks a cut."""

import re
from collections.abc import Sequence
from typing import Final

_ELLIPSIS: Final = "…"
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters except tabs and newlines, and characters that change the direction of text."""


def cut(text: str, limit: int) -> str:
    """Return a text, or its beginning: at most `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}{_ELLIPSIS}"


def cut_front(text: str, limit: int) -> str:
    """Return a text, or its end: at most `limit` characters."""
    return text if len(text) <= limit else f"{_ELLIPSIS}{text[1 - limit :]}"


def cut_bytes(text: str, limit_bytes: int) -> str:
    """Return as many whole characters as `limit_bytes` of UTF-8 hold: a key has no ellipsis."""
    return text.encode()[:limit_bytes].decode(errors="ignore")


def cut_line(text: str, limit_bytes: int) -> str:
    """Return a text, or its beginning, on one line: at most `limit_bytes` of UTF-8."""
    line = one_line(text[:limit_bytes]).encode(errors="replace")
    if len(line) <= limit_bytes and len(text) <= limit_bytes:
        return line.decode()
    return line[: limit_bytes - len(_ELLIPSIS.encode())].decode(errors="ignore") + _ELLIPSIS


def name_some(names: Sequence[str], most: int) -> str:
    """Return the first `most` names, with commas between them, and the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def count_noun(number: int, noun: str) -> str:
    """Return a number with its noun, plural unless the number is 1: `1 work order`, `2,000 work orders`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def one_line(text: str) -> str:
    """Return a text's printable characters on one line, with single spaces."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def without_controls(text: str) -> str:
    """Return a text without characters that move a cursor or change its direction; tabs and newlines stay."""
    return _CONTROLS.sub("", text)


def table_cell(text: str, limit: int = 80) -> str:
    """Return a text as a cell of a Markdown table: on one line, without `|` and backquotes."""
    return cut(" ".join(text.split()).replace("|", "¦").replace("`", "'"), limit)
