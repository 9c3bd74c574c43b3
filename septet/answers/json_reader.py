"""Read one JSON array or object in the middle of a text, in one pass without recursion and backtracking.

JSON is a row of signs (`{ } [ ] : ,`) with at most one scalar before each sign, and `_STEP` matches one sign with
its scalar. Besides strict JSON, two kinds of mistakes are read: *mends* leave no doubt about any value, and
*faults* make the value unusable but still show where it ends.
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
"""The deepest nesting of arrays and objects that is read; no contract needs as much."""

BLANK: Final = r"[ \t\n\r]*+"
# A comment ends before the next `/*` at the latest: a text full of unclosed ones is scanned once.
# Groups are atomic and never possessive: Python 3.11.2 of Debian 12 matches possessive groups wrongly.
_COMMENT: Final = r"//[^\n]*+|/\*(?>(?:[^*/]++|\*(?!/)|/(?!\*))*)\*/"
_SPACE: Final = rf"(?>(?:[ \t\n\r]++|({_COMMENT}))*)"
_NOT_PLAIN: Final = r"\x00-\x08\x0b\x0c\x0e-\x1f\\"
_ESCAPE: Final = r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})'
QUOTED: Final = rf"(?:\"(?>(?:[^\"{_NOT_PLAIN}]++|{_ESCAPE})*)\"|'(?>(?:[^'{_NOT_PLAIN}]++|{_ESCAPE}|\\')*)')"
# A quote ends a string only if JSON can continue behind it. A quotation in prose is no string, and neither is a
# string that was cut off and "closed" by the first quote of a later text.
BEHIND_A_SCALAR: Final = rf"(?={BLANK}(?:[\]}}:,/]|\Z))"
NUMBER: Final = r"-?(?:0|[1-9][0-9]*+)(?>(?:\.[0-9]++)?)(?>(?:[eE][+-]?[0-9]++)?)"
BARE_WORD: Final = r"[A-Za-z_$][\w$]*+"
_STEP: Final = re.compile(
    rf"{_SPACE}(?>(?:({QUOTED}){BEHIND_A_SCALAR}|({NUMBER})|(-?{BARE_WORD}))?){_SPACE}(?P<mark>[\[\]{{}}:,])?"
)
_CONTROL: Final = re.compile(r"[\t\n\r]")
_ESCAPE_OR_QUOTE: Final = re.compile(r"\\.|\"")

_JSON_WORDS: Final[Mapping[str | None, JsonValue]] = MappingProxyType({"true": True, "false": False, "null": None})
_PYTHON_WORDS: Final[Mapping[str | None, JsonValue]] = MappingProxyType(
    {"True": True, "False": False, "None": None}
)
_SNIPPET_CHARACTERS: Final = 24

_unescaped = json.JSONDecoder(strict=False).decode
"""The decoder of one string in double quotes; it accepts control characters in the string."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read at one place of a text: a JSON value, its end, and mistakes."""

    value: JsonValue
    """The value; unusable if there are faults."""
    end: int
    """The position at which the reading stopped: after the value, or where the text stops being JSON."""
    mends: tuple[str, ...] = ()
    """The mistakes of syntax that were mended, in words."""
    faults: tuple[str, ...] = ()
    """The reasons why the value is unusable, in words for the author of the text."""


def read_json(text: str, start: int = 0) -> Reading:
    """Read the array or object that begins at `start`; if it breaks off, the last fault names the place."""
    reader = _Reader()
    for step in _STEP.finditer(text, start):
        try:
            reader.take(step)
        except _BrokenError as broken:
            at = step.start("mark") if step["mark"] else step.end()
            return Reading(None, at, tuple(reader.mends), (*reader.faults, _fault(text, start, at, str(broken))))
        if reader.inner is None:
            return Reading(reader.root, step.end(), tuple(reader.mends), tuple(reader.faults))
    raise AssertionError  # pragma: no cover -- a step matches anywhere, and one without a mark breaks


def _fault(text: str, start: int, at: int, cause: str) -> str:
    if at == len(text):
        return "it is cut off"
    near = text[at : at + _SNIPPET_CHARACTERS]
    if near[0] in "\"'":
        cause = "a string that does not end, or a quote in it that is not escaped"
    return f"it is broken {at - start} characters on, near {near!r}{cause and ': '}{cause}"


class _BrokenError(Exception):
    """The text stops being JSON."""


class _Reader:
    """A JSON value while it is built: the open arrays and objects, and what may come next."""

    __slots__ = ("after_comma", "faults", "filled", "inner", "key", "mends", "outer", "root")

    def __init__(self) -> None:
        self.root: JsonValue = None
        self.inner: list[JsonValue] | dict[str, JsonValue] | None = None
        self.outer: list[list[JsonValue] | dict[str, JsonValue]] = []
        self.key: str | None = None
        self.filled = False  # the last member is complete: only a comma or the end may follow
        self.after_comma = False
        self.mends: dict[str, None] = {}  # in order, each once
        self.faults: dict[str, None] = {}

    def take(self, step: re.Match[str]) -> None:
        """Add the scalar before a sign such as `,`, and then the sign, to the value; may raise `_BrokenError`."""
        comment, string, number, word, late_comment, mark = step.groups()
        if comment or late_comment:
            self.mends["comment"] = None
        if mark == ":":
            self.name_member(string, word)
            return
        if string:
            self.put(self.decode(string))
        elif number:
            self.put(self.numeric(number))
        elif word:
            self.put(self.literal(word))
        if mark == ",":
            self.go_on()
        elif mark == "{":
            self.open({})
        elif mark == "[":
            self.open([])
        elif mark:
            self.close(dict if mark == "}" else list)
        else:
            raise _BrokenError

    def open(self, container: list[JsonValue] | dict[str, JsonValue]) -> None:
        if self.inner is None:
            self.root = container
        else:
            self.put(container)
            self.outer.append(self.inner)
            if len(self.outer) == MAX_DEPTH:
                raise _BrokenError(f"more than {MAX_DEPTH} brackets inside one another")
        self.inner = container
        self.filled = self.after_comma = False

    def close(self, kind: type) -> None:
        if type(self.inner) is not kind or self.key is not None:
            raise _BrokenError("the wrong bracket")
        if self.after_comma and not self.filled:
            self.mends["trailing comma"] = None
        self.inner = self.outer.pop() if self.outer else None
        self.filled = True

    def go_on(self) -> None:
        if not self.filled:
            raise _BrokenError("a comma with nothing before it")
        self.filled = False
        self.after_comma = True

    def name_member(self, string: str | None, word: str | None) -> None:
        if type(self.inner) is not dict or self.key is not None or self.filled:
            raise _BrokenError("a colon where none belongs")
        if string:
            self.key = self.decode(string)
        elif word:
            self.key = word
            self.faults["a key without quotes"] = None
        else:
            raise _BrokenError("a colon with no key before it")

    def put(self, value: JsonValue) -> None:
        if self.filled:
            raise _BrokenError("no comma between two values")
        inner, key = self.inner, self.key
        if type(inner) is list:
            inner.append(value)
        elif type(inner) is dict and key is not None:
            if key in inner:
                self.faults[f"the key {key[:_SNIPPET_CHARACTERS]!r} occurs twice"] = None
            inner[key] = value
            self.key = None
        else:
            raise _BrokenError("a value where a key belongs")
        self.filled = True

    def decode(self, string: str) -> str:
        body = string[1:-1]
        if string[0] == "'":
            self.mends["single quotes"] = None
            # Every `\\'` in it is one escape: after an even row of backslashes the quote would end the string.
            body = _ESCAPE_OR_QUOTE.sub(
                lambda match: '\\"' if match[0] == '"' else match[0], body.replace("\\'", "'")
            )
        if _CONTROL.search(body):
            self.mends["raw newline or tab in a string"] = None
        return str(_unescaped(f'"{body}"')) if "\\" in body else body

    def numeric(self, number: str) -> JsonValue:
        try:
            return int(number)
        except (
            ValueError
        ):  # a fraction or an exponent; or more digits than Python reads, which makes an infinite float
            value = float(number)
        if math.isinf(value):
            self.faults["a number too large"] = None
        return value

    def literal(self, word: str) -> JsonValue:
        if word in _JSON_WORDS:
            return _JSON_WORDS[word]
        if word in _PYTHON_WORDS:
            self.mends["Python literal"] = None
            return _PYTHON_WORDS[word]
        if word in {"NaN", "Infinity", "-Infinity"}:
            self.faults[f"{word} is not JSON"] = None
            return None
        raise _BrokenError("a word without quotes")
