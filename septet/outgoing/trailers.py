"""The trailers of a commit's message: those that an agent may write, and none in the name of others."""

import re
from typing import Final

_TRAILER: Final = re.compile(r"\s{0,3}(?P<token>[A-Za-z0-9-]{1,100})\s{0,3}:")
_SPEAKS_FOR_OTHERS: Final = re.compile(
    r"^[ \t>*-]{0,10}(?:[A-Za-z0-9-]{1,60}-by|on-behalf-of|skip-checks)[ \t]{0,3}:.*(?:\n[ \t]+\S.*)*\n?",
    re.IGNORECASE | re.MULTILINE,
)
"""Whoever is named there is taken for an author, a reviewer or a witness, by forges too; the last one stops CI."""
_BLANK_LINE: Final = re.compile(r"\n[ \t]+(?=\n)")
_ALLOWED: Final = frozenset({"change-id"})
_PICKED: Final = "(cherry picked from"


def without_attributions(text: str) -> str:
    """Return a text without lines that say in a trailer's form who wrote, signed or reviewed something."""
    return _SPEAKS_FOR_OTHERS.sub("", text)


def without_trailers(message: str) -> str:
    """Return a message whose only trailers are those of an allow-list; what others say stays as a list."""
    subject, newline, rest = _BLANK_LINE.sub("\n", message.strip()).partition("\n")
    rest = without_attributions(rest).rstrip()
    gap_above = rest[: len(rest) - len(rest.lstrip("\n"))]
    body, gap, last = rest.lstrip("\n").rpartition("\n\n")
    lines = last.split("\n")
    is_block = all(_TRAILER.match(line) or line[:1] in {" ", "\t"} for line in lines) or _PICKED in last
    if last.strip() and is_block:
        named = [(_token(line) in _ALLOWED, line) for line in lines]
        said = "\n".join(f"- {line.strip()}" for allowed, line in named if not allowed)
        kept = "\n".join(line.strip() for allowed, line in named if allowed)
        last = "\n\n".join(filter(None, (said, kept)))
    return f"{subject}{newline}{gap_above}{body}{gap}{last}".rstrip()


def _token(line: str) -> str:
    match = _TRAILER.match(line)
    return match["token"].lower() if match else ""
