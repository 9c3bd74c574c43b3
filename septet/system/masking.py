"""The values of this process's keys, masked exactly wherever something leaves it.

What looks like a key is `preview.scrub`'s; here it is known what the keys are, also in the encodings in which
a program prints them by chance or on purpose.
"""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final
from urllib.parse import quote, quote_plus

MASK: Final = "***"

_SHORTEST: Final = 8
"""Characters. Shorter values are words, and masking them would mask the text."""
_hidden: set[str] = set()


def hide(values: Iterable[str]) -> None:
    """Have `values` masked from now on; those of less than eight characters are not."""
    _hidden.update(value for value in values if len(value) >= _SHORTEST)
    _forms.cache_clear()
    _forms_in_bytes.cache_clear()


def hidden_values() -> frozenset[str]:
    """Return the values that are masked."""
    return frozenset(_hidden)


def reveal(values: Iterable[str]) -> None:
    """Mask `values` no longer."""
    _hidden.difference_update(values)
    _forms.cache_clear()
    _forms_in_bytes.cache_clear()


def mask(text: str) -> str:
    """Return `text` with all hidden values masked, also where they are encoded; the longest form first."""
    for form in _forms():
        if form in text:
            text = text.replace(form, MASK)
    return text


def mask_bytes(content: bytes) -> bytes:
    """Return `content`, text in UTF-8 or not, with all hidden values masked."""
    for form in _forms_in_bytes():
        if form in content:
            content = content.replace(form, MASK.encode())
    return content


def mask_json(content: bytes) -> bytes:
    """Return a JSON document with all hidden values masked in its strings; numbers and structure stay."""
    if not _hidden or mask_bytes(content) == content:
        return content
    try:
        document = json.loads(content)
    except ValueError:
        return mask_bytes(content)
    return json.dumps(_mask_strings(document), separators=(",", ":")).encode()


def _mask_strings(value: Any) -> Any:  # noqa: ANN401 -- any JSON
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, list):
        return [_mask_strings(each) for each in value]
    if isinstance(value, dict):
        return {mask(name): _mask_strings(each) for name, each in value.items()}
    return value


@cache
def _forms() -> tuple[str, ...]:
    """Return all that the hidden values may look like, the longest first."""
    forms = {form for value in _hidden for form in _encodings(value) if len(form) >= _SHORTEST}
    return tuple(sorted(forms, key=len, reverse=True))


@cache
def _forms_in_bytes() -> tuple[bytes, ...]:
    return tuple(form.encode(errors="surrogateescape") for form in _forms())


def _encodings(value: str) -> Iterator[str]:
    content = value.encode(errors="surrogateescape")
    yield value
    yield quote(content, safe="")
    yield quote(content)
    yield quote_plus(content)
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield content.hex()
    yield content.hex().upper()
    for encode in (b64encode, urlsafe_b64encode):
        for before in range(3):
            yield _core(encode(b"\0" * before + content).decode(), before, len(content))


def _core(text: str, before: int, length: int) -> str:
    """Return the part of a base64 that the value alone decides, whatever stands before and after it."""
    first = -(-before * 8 // 6)
    last = (before + length) * 8 // 6
    return text[first:last]
