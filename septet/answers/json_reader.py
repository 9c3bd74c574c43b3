"""Read one JSON array or object from the middle of a text: one pass, no recursion, no second look.

JSON is a row of marks (`{ } [ ] : ,`) with at most one scalar before each, and so it is read here: one match of
`_STEP` for each mark. Beside strict JSON the reader follows two kinds of slips to their end, so that the extent of a
value is known: *mends*, which leave no doubt about any value, and *faults*, which make the value unusable.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

MAX_DEPTH: Final = 32
"""Containers inside one another; no contract comes near it, and `json` could not write much deeper ones."""

_BLANK: Final = r"[ \t\n\r]*+"
# A comment ends at the next `/*` at the latest, so that a text full of unclosed ones is scanned once.
_COMMENT: Final = r"//[^\n]*+|/\*(?:[^*/]++|\*(?!/)|/(?!\*))*+\*/"
_SPACE: Final = rf"(?:[ \t\n\r]++|({_COMMENT}))*+"
_INSIDE: Final = r"\x00-\x08\x0b\x0c\x0e-\x1f\\"
_ESCAPE: Final = r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})'
# A quote ends a string only where JSON can go on after a string: a quotation in prose is no string, and neither is
# one that was cut off and "closed" by the first quote of a later text.
_STRING: Final = (
    rf"(\"(?:[^\"{_INSIDE}]++|{_ESCAPE})*+\"|'(?:[^'{_INSIDE}]++|{_ESCAPE}|\\')*+')(?={_BLANK}(?:[]}}:,/]|\Z))"
)
_NUMBER: Final = r"(-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+)"
_WORD: Final = r"(-?[A-Za-z_$][\w$]*+)"
_STEP: Final = re.compile(rf"{_SPACE}(?:{_STRING}|{_NUMBER}|{_WORD})?+{_SPACE}([][{{}}:,])?")
_RAW_CONTROL: Final = re.compile(r"[\t\n\r]")
_ESCAPE_OR_QUOTE: Final = re.compile(r"\\.|\"")

_JSON_WORDS: Final[Mapping[str, JsonValue]] = MappingProxyType({"true": True, "false": False, "null": None})
_PYTHON_WORDS: Final[Mapping[str, JsonValue]] = MappingProxyType({"True": True, "False": False, "None": None})
_NO_NUMBERS: Final = frozenset({"NaN", "Infinity", "-Infinity"})
_SNIPPET_CHARACTERS: Final = 24

_loose_string = json.JSONDecoder(strict=False).decode


@dataclass(frozen=True, slots=True)
class Reading:
    """What stands at one place of a text."""

    value: JsonValue
    """The value; of no use where there are faults."""
    end: int
    """Where the reader stopped: behind the value, or where it breaks."""
    mends: tuple[str, ...] = ()
    """The slips of syntax that were read past, in words."""
    faults: tuple[str, ...] = ()
    """Why it is not to be used, in words fit for the one who wrote it."""


def read_json(text: str, start: int = 0) -> Reading:
    """Read the array or object whose bracket stands at `start`; what breaks is a reading with a fault."""
    return _Reader(text).read(start)


class _BrokenError(Exception):
    """The text stops being JSON."""


class _Reader:
    """A value under construction: the open containers, and what may come next."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._root: JsonValue = None
        self._outer: list[list[JsonValue] | dict[str, JsonValue]] = []
        self._inner: list[JsonValue] | dict[str, JsonValue] | None = None
        self._key: str | None = None
        self._filled = False
        """The innermost container's last member is complete: only a comma or the end may follow."""
        self._after_comma = False
        # In order, each once.
        self._mends: dict[str, None] = {}
        self._faults: dict[str, None] = {}

    def read(self, start: int) -> Reading:
        for step in _STEP.finditer(self._text, start):
            comment, string, number, word, late_comment, mark = step.groups()
            if comment or late_comment:
                self._mends["comment"] = None
            try:
                if mark == ":":
                    self._name_member(string, word)
                else:
                    if string or number or word:
                        self._put(self._scalar(string, number, word))
                    self._follow(mark)
            except _BrokenError as broken:
                return self._broken(start, step.start(6) if mark else step.end(), str(broken))
            if self._inner is None:
                return Reading(self._root, step.end(), tuple(self._mends), tuple(self._faults))
        raise AssertionError  # pragma: no cover -- a step matches everywhere, and one without a mark breaks

    def _follow(self, mark: str | None) -> None:
        if mark == ",":
            if not self._filled:
                raise _BrokenError("a comma with nothing before it")
            self._filled, self._after_comma = False, True
        elif mark == "{":
            self._open({})
        elif mark == "[":
            self._open([])
        elif mark is None:
            raise _BrokenError
        else:
            self._close(dict if mark == "}" else list)

    def _open(self, container: list[JsonValue] | dict[str, JsonValue]) -> None:
        if self._inner is None:
            self._root = container
        else:
            self._put(container)
            self._outer.append(self._inner)
            if len(self._outer) >= MAX_DEPTH:
                raise _BrokenError(f"more than {MAX_DEPTH} brackets inside one another")
        self._inner = container
        self._filled = self._after_comma = False

    def _close(self, kind: type) -> None:
        if type(self._inner) is not kind or self._key is not None:
            raise _BrokenError
        if self._after_comma and not self._filled:
            self._mends["trailing comma"] = None
        self._inner = self._outer.pop() if self._outer else None
        self._filled = True

    def _name_member(self, string: str | None, word: str | None) -> None:
        if type(self._inner) is not dict or self._key is not None or self._filled:
            raise _BrokenError
        if string:
            self._key = self._decoded(string)
        elif word:
            self._key = word
            self._faults["a key without quotes"] = None
        else:
            raise _BrokenError("a colon with no key before it")

    def _put(self, value: JsonValue) -> None:
        if self._filled:
            raise _BrokenError("no comma between two values")
        inner, key = self._inner, self._key
        if type(inner) is list:
            inner.append(value)
        elif type(inner) is dict and key is not None:
            if key in inner:
                self._faults[f'the key "{key[:_SNIPPET_CHARACTERS]}" stands twice'] = None
            inner[key] = value
        else:
            raise _BrokenError("a value where a key belongs")
        self._key = None
        self._filled = True

    def _scalar(self, string: str | None, number: str | None, word: str | None) -> JsonValue:
        if string:
            return self._decoded(string)
        if number:
            return self._number(number)
        if word in _JSON_WORDS:
            return _JSON_WORDS[word]
        if word in _PYTHON_WORDS:
            self._mends["Python literal"] = None
            return _PYTHON_WORDS[word]
        if word in _NO_NUMBERS:
            self._faults[f"{word} is not JSON"] = None
            return None
        raise _BrokenError

    def _decoded(self, string: str) -> str:
        body = string[1:-1]
        if string[0] == "'":
            self._mends["single quotes"] = None
            # Each `\'` inside is an escape of its own: an even row of backslashes before it would have ended the string.
            body = _ESCAPE_OR_QUOTE.sub(lambda found: '\\"' if found[0] == '"' else found[0], body.replace("\\'", "'"))
        if _RAW_CONTROL.search(body):
            self._mends["raw newline or tab in a string"] = None
        return str(_loose_string(f'"{body}"')) if "\\" in body else body

    def _number(self, number: str) -> JsonValue:
        try:
            value = float(number) if not number.lstrip("-").isdecimal() else int(number)
        except ValueError:  # Python reads integers of up to 4300 digits
            value = math.inf
        if math.isinf(value):
            self._faults["a number too large"] = None
            return None
        return value

    def _broken(self, start: int, at: int, cause: str) -> Reading:
        if at == len(self._text):
            fault = "the text ends inside it"
        else:
            near = self._text[at : at + _SNIPPET_CHARACTERS]
            fault = f"it is broken {at - start} characters on, near {near!r}" + (f": {cause}" if cause else "")
        return Reading(None, at, tuple(self._mends), (*self._faults, fault))
