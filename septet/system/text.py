"""Cut texts to a limit, write times as text, and remove control characters and invisible characters."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

_ELLIPSIS: Final = "…"
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters except tabs and newlines, and characters that change the direction of text."""


def cut(text: str, limit: int) -> str:
    """Return a text, cut at its end to at most `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}{_ELLIPSIS}"


def cut_front(text: str, limit: int) -> str:
    """Return a text, cut at its beginning to at most `limit` characters."""
    return text if len(text) <= limit else f"{_ELLIPSIS}{text[1 - limit :]}"


def cut_bytes(text: str, limit_bytes: int) -> str:
    """Return a text, cut at its end to at most `limit_bytes` of UTF-8, in whole characters."""
    return text.encode()[:limit_bytes].decode(errors="ignore")


def cut_line(text: str, limit_bytes: int) -> str:
    """Return a text on one line, cut at its end to at most `limit_bytes` of UTF-8."""
    line = one_line(text[:limit_bytes]).encode(errors="replace")
    if len(line) <= limit_bytes and len(text) <= limit_bytes:
        return line.decode()
    return line[: limit_bytes - len(_ELLIPSIS.encode())].decode(errors="ignore") + _ELLIPSIS


def name_some(names: Sequence[str], most: int) -> str:
    """Return the first `most` names with commas between them, and how many more names there are, as text."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def count_noun(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1: `1 work order`, `2,000 work orders`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def timestamp(moment: datetime) -> str:
    """Return a time as ISO 8601 in UTC with milliseconds and `Z`, in one form for all clients."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def one_line(text: str) -> str:
    """Return the printable characters of a text on one line, with single spaces."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def without_controls(text: str) -> str:
    """Return a text without control characters and changes of text direction; tabs and newlines stay."""
    return _CONTROLS.sub("", text)


def table_cell(text: str, limit: int = 80) -> str:
    """Return a text as a cell of a Markdown table: on one line, without `|` and backquotes."""
    return cut(" ".join(text.split()).replace("|", "¦").replace("`", "'"), limit)


_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_JOINERS: Final = frozenset("\u200c\u200d")
_STYLES: Final = frozenset("\ufe0e\ufe0f")
"""The characters that make the sign before them appear as text or as an emoji."""
_SKIN: Final = range(0x1F3FB, 0x1F400)
_MORE_SIGNS: Final = frozenset("\u203c\u2049\u2139\u2194\u25fb\u25fc\u25fd\u25fe\u2934\u2935\u3030")
"""Signs that can appear as an emoji and are not in Unicode's category of other symbols."""
_DIRECTIONS: Final = frozenset("\u061c\u200e\u200f")
_NEAR: Final = 16
"""The longest distance, in characters, between a mark of text direction and a letter that needs the mark."""
_WITHOUT_SPACES: Final = (("\u0e01", "\u0eff"), ("\u1000", "\u109f"), ("\u1780", "\u17b3"), ("\u17b6", "\u17ff"))
_BOM: Final = "\ufeff"
_FLAG: Final = re.compile(
    "\U0001f3f4\U000e0067\U000e0062"
    "(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
"""The pattern of the flags of England, Scotland and Wales, which contain invisible characters."""


def without_invisible(text: str) -> str:
    """Return a text without invisible characters, in linear time.

    Needed ones stay, at most one in each place: between emojis, between letters of some scripts, after a sign to
    choose between emoji and text, and near a letter of a right-to-left script.
    """
    return text if text.isascii() else _INVISIBLE.sub(_joint, text)


def escape_invisible(text: str) -> str:
    """Return a text with Python's escapes in place of all invisible characters, in linear time."""
    return (
        text if text.isascii() else _INVISIBLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
    )


def find_invisible(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield each character that `without_invisible` removes, with line and column, except a BOM at the start."""
    if text.isascii():
        return
    line, line_begin, last, flag_end = 1, 0, 0, 0
    for match in _INVISIBLE.finditer(text, int(text.startswith(_BOM))):
        at = match.start()
        if newlines := text.count("\n", last, at):
            line, line_begin = line + newlines, text.rindex("\n", last, at) + 1
        last = at
        if flag := _FLAG.match(text, max(at - 1, 0)):
            flag_end = flag.end()
        if at >= flag_end and not _joint(match):
            yield line, at - line_begin + 1, match[0]


def _joint(match: re.Match[str]) -> str:
    character, text = match[0], match.string
    before = text[match.start() - 1 : match.start()]
    after = text[match.end() : match.end() + 1]
    if character in _STYLES:
        return character if before and (_is_sign(before) or before in "0123456789#*") else ""
    if character in _DIRECTIONS:
        near = text[max(match.start() - _NEAR, 0) : match.end() + _NEAR]
        return character if before not in _DIRECTIONS and any(map(_runs_to_the_left, near)) else ""
    if character == "\u200b":
        return character if _has_no_spaces(before) and _has_no_spaces(after) else ""
    if character not in _JOINERS or not before:
        return ""
    joins_signs = character == "\u200d" and (_is_sign(before) or before in _STYLES) and _is_sign(after)
    return character if joins_signs or _has_joints(before) else ""


def _is_sign(character: str) -> bool:
    is_symbol = bool(character) and unicodedata.category(character) == "So"
    return is_symbol or character in _MORE_SIGNS or (bool(character) and ord(character) in _SKIN)


def _has_joints(character: str) -> bool:
    """Return whether a character belongs to a script whose letters join: from Arabic to the scripts of India."""
    return "\u0600" <= character <= "\u1aff" and unicodedata.category(character)[0] in "LM"


def _has_no_spaces(character: str) -> bool:
    """Return whether a character belongs to a script without spaces: of Thailand, Laos, Myanmar or Cambodia."""
    return any(first <= character <= last for first, last in _WITHOUT_SPACES)


def _runs_to_the_left(character: str) -> bool:
    return character not in _DIRECTIONS and unicodedata.bidirectional(character) in {"R", "AL"}
