"""Mask keys in all text that leaves this process: known keys in each encoding, and text that looks like a key."""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from functools import lru_cache
from threading import Lock
from typing import AnyStr, Final
from urllib.parse import quote, quote_plus

from septet.system.text import cut

MASK: Final = "***"

_SHORTEST: Final = 8
"""The fewest characters of a masked value: a mask for a shorter value would hide ordinary words."""
_SHORTEST_LINE: Final = 60
"""The shortest broken lines of base64 or hexadecimal digits, in columns; most programs break after 64 or 76."""
_LINE_END: Final = r"(?:(?:\r|\\+r)?(?:\n|\\+n)[ \t]*)?"
"""The pattern of a line end, or of its escape in JSON, with the indentation of the next line."""
_RUN: Final = "[A-Za-z0-9+/_-]{40}"
_BROKEN_LINES: Final = (
    re.compile(rf"\n(?:(?<={_RUN}\n)|(?<={_RUN}\r\n))"),
    re.compile(rf"\\n(?:(?<={_RUN}\\n)|(?<={_RUN}\\r\\n)|(?<={_RUN}\\\\n)|(?<={_RUN}\\\\r\\\\n))"),
)
"""The patterns of line ends after a run of digits; to look for the digits first would take 100 times as long."""
_BROKEN_LINES_IN_BYTES: Final = tuple(re.compile(each.pattern.encode()) for each in _BROKEN_LINES)
_CHANGES_KEPT: Final = 4
"""The number of versions of a source's values that stay masked: an agent uses its first login for some hours."""


class _Hidden:
    """The values to mask; `values` is replaced as a whole, so that readers need no lock."""

    def __init__(self) -> None:
        self.values: frozenset[str] = frozenset()
        self._lasting: frozenset[str] = frozenset()
        self._of_sources: dict[str, tuple[frozenset[str], ...]] = {}
        self._lock = Lock()

    def change(self, more: Iterable[str], fewer: Iterable[str]) -> None:
        revealed = frozenset(fewer)
        with self._lock:
            self._lasting = (self._lasting | _long_enough(more)) - revealed
            for source, changes in self._of_sources.items():
                self._of_sources[source] = tuple(values - revealed for values in changes)
            self._renew()

    def change_of(self, source: str, values: Iterable[str]) -> None:
        with self._lock:
            now, before = _long_enough(values), self._of_sources.get(source, ())
            if before[:1] != (now,):
                changes = (now, *(each for each in before if each != now))
                self._of_sources[source] = changes[:_CHANGES_KEPT]
                self._renew()

    def _renew(self) -> None:
        self.values = self._lasting.union(*(each for changes in self._of_sources.values() for each in changes))


_hidden: Final = _Hidden()


def hide(values: Iterable[str]) -> None:
    """Mask these values from now on; values of less than eight characters are not masked."""
    _hidden.change(values, ())


def hide_of(source: str, values: Iterable[str]) -> None:
    """Mask the present values of a source, such as a file; its last few earlier values stay masked."""
    _hidden.change_of(source, values)


def hidden_values() -> frozenset[str]:
    """Return all values that are masked."""
    return _hidden.values


def reveal(values: Iterable[str]) -> None:
    """Stop masking these values, even if another caller has called `hide` for them."""
    _hidden.change((), values)


def mask(text: str) -> str:
    """Mask in `text` all values that were passed to `hide`, even in other encodings; return the result.

    Base64 and hexadecimal digits are found even if they are broken into lines.
    """
    whole, broken = _forms(_hidden.values)
    for form in whole:
        if form in text:
            text = text.replace(form, MASK)
    if whole and any(lines.search(text) for lines in _BROKEN_LINES):
        for form, first, second in broken:
            if first in text or second in text:
                text = _over_lines(form).sub(MASK, text)
    return text


def mask_bytes(content: bytes) -> bytes:
    """Return `content` masked as by `mask`; the bytes need not be valid UTF-8."""
    whole, broken = _forms_in_bytes(_hidden.values)
    for form in whole:
        if form in content:
            content = content.replace(form, MASK.encode())
    if whole and any(lines.search(content) for lines in _BROKEN_LINES_IN_BYTES):
        for form, first, second in broken:
            if first in content or second in content:
                content = _over_lines_in_bytes(form).sub(MASK.encode(), content)
    return content


def longest_form_bytes() -> int:
    """Return the most bytes that a masked value takes in any encoding, with line ends; 0 without masked values."""
    whole, _ = _forms_in_bytes(_hidden.values)
    return 2 * max(map(len, whole), default=0)


def mask_json(content: bytes) -> bytes:
    """Return a JSON document in whose strings this process's secrets are masked; numbers and structure stay."""
    values = _hidden.values
    if not values or (
        mask_bytes(content) == content and not any(form in content for form in _forms_in_json(values))
    ):
        return content
    try:
        return json.dumps(_mask_strings(json.loads(content)), separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return mask_bytes(content)


def _mask_strings(value: object) -> object:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, list):
        return [_mask_strings(each) for each in value]
    if isinstance(value, dict):
        return {mask(name): _mask_strings(each) for name, each in value.items()}
    return value


def _long_enough(values: Iterable[str]) -> frozenset[str]:
    return frozenset(value for value in values if len(value) >= _SHORTEST)


Broken = tuple[AnyStr, AnyStr, AnyStr]
"""An encoded value that may be broken into lines, and two parts of it; a line end can break only one of these."""


@lru_cache(maxsize=2)
def _forms(values: frozenset[str]) -> tuple[tuple[str, ...], tuple[Broken[str], ...]]:
    """Return all encodings of `values`, the longest first, and the encodings that may be broken into lines."""
    broken = {form for value in values for form in _encodings_in_lines(value) if len(form) >= _SHORTEST}
    whole = broken.union(form for value in values for form in _encodings(value))
    return tuple(sorted(whole, key=len, reverse=True)), tuple(map(_halve, sorted(broken, key=len, reverse=True)))


@lru_cache(maxsize=2)
def _forms_in_bytes(values: frozenset[str]) -> tuple[tuple[bytes, ...], tuple[Broken[bytes], ...]]:
    whole, broken = _forms(values)
    return tuple(map(_bytes, whole)), tuple((_bytes(form), _bytes(a), _bytes(b)) for form, a, b in broken)


@lru_cache(maxsize=2)
def _forms_in_json(values: frozenset[str]) -> tuple[bytes, ...]:
    """Return the forms of `values` that occur only in JSON strings."""
    whole, _ = _forms(values)
    return tuple({_bytes(escaped) for form in whole for escaped in _in_json(form)} - set(map(_bytes, whole)))


def _bytes(form: str) -> bytes:
    return form.encode(errors="surrogateescape")


def _halve(form: str) -> Broken[str]:
    end = min(len(form), _SHORTEST_LINE)
    return form, form[: end // 2], form[end // 2 : end]


@lru_cache(maxsize=256)
def _over_lines(form: str) -> re.Pattern[str]:
    return re.compile(_LINE_END.join(map(re.escape, form)))


@lru_cache(maxsize=256)
def _over_lines_in_bytes(form: bytes) -> re.Pattern[bytes]:
    return re.compile(_over_lines(form.decode()).pattern.encode())


def _encodings(value: str) -> Iterator[str]:
    content = _bytes(value)
    yield value
    yield quote(content, safe="")
    yield quote(content)
    yield quote_plus(content)
    for once in _in_json(value):
        yield once
        yield from _in_json(once)


def _in_json(text: str) -> Iterator[str]:
    """Yield the two forms that a text can have in a JSON string: in ASCII alone, and with other characters."""
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]


def _encodings_in_lines(value: str) -> Iterator[str]:
    content = _bytes(value)
    yield content.hex()
    yield content.hex().upper()
    for encode in (b64encode, urlsafe_b64encode):
        for before in range(3):
            yield _core(encode(b"\0" * before + content).decode(), before, len(content))


def _core(text: str, before: int, length: int) -> str:
    """Return the part of the base64 `text` that encodes only the `length` bytes after the first `before` bytes."""
    first = -(-before * 8 // 6)
    last = (before + length) * 8 // 6
    return text[first:last]


_SHORTEST_SECRET: Final = 6
"""The fewest characters of a secret that is masked: a mask for a shorter value would hide ordinary words."""
_LOOKED_AT: Final = 16_384
"""The number of characters of a text that are read, more than a preview shows."""
_BLOCK: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_KEYS: Final = re.compile(
    r"""
      \b sk-[A-Za-z0-9_-]{8,}                            # OpenAI, Anthropic
    | \b gh[oprsu]_[A-Za-z0-9]{10,}                      # GitHub
    | \b github_pat_[A-Za-z0-9_]{10,}
    | \b glpat-[A-Za-z0-9_-]{10,}                        # GitLab
    | \b (?:AKIA|ASIA)[A-Z0-9]{12,}                      # AWS
    | \b AIza[A-Za-z0-9_-]{20,}                          # Google
    | \b xox[abeoprs]-[A-Za-z0-9-]{8,}                   # Slack
    | (?<![A-Za-z0-9_-]) eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*   # JSON web tokens
    """,
    re.VERBOSE,
)
_AFTER_A_WORD: Final = re.compile(
    r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}|(://[^\s/:@]*:)[^\s/@]+(?=@)"
    r"|\b((?:api[_-]?key|secret|token|password|passwd)[\"']?\s*[:=]\s*[\"']?)[^\s\"',;]{4,}"
)


def preview(text: str, *, limit: int = 200) -> str:
    """Return the beginning of `text` on one line; mask keys, and text that looks like a key."""
    line = " ".join(scrub(text[:_LOOKED_AT]).split())
    return cut(printable(line[: limit + 1]), limit)


def printable(text: str) -> str:
    """Return `text` without unprintable characters, which could control a terminal; newlines and tabs stay."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def scrub(text: str, values: Iterable[str] = ()) -> str:
    """Mask in `text` this process's keys, `values`, and what looks like a key; return the result."""
    text = mask(text)
    for value in sorted(set(values), key=len, reverse=True):
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, MASK)
    text = _BLOCK.sub(MASK, text)
    text = _KEYS.sub(MASK, text)
    return _AFTER_A_WORD.sub(_mask, text)


def _mask(match: re.Match[str]) -> str:
    if match[1] is not None:
        return f"{match[1]} {MASK}"
    return f"{match[2] or match[3]}{MASK}"
