"""Find the JSON values in a text: alone, in a fence, or in the middle of prose.

The text is read once, in linear time. A value inside a larger value, or inside a cut-off object, is no separate
answer.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

from pydantic import JsonValue

from septet.answers.json_reader import BARE_WORD, BEHIND_A_SCALAR, BLANK, NUMBER, QUOTED, Reading, read_json

Rung = Literal["structured", "json", "fence", "embedded", "plain", "mended"]
"""The ways in which an answer can be read, from the most trusted to the least trusted."""

_FENCE: Final = r"(?:`{3,}+|~{3,}+)"
# In prose only a bracket with a part of JSON behind it is read. The regular expression skips other brackets, and
# rows of brackets that are longer than any answer's. No part of a text is scanned once for each bracket: a string
# ends at the next quote, and a comment before a key at the next brace.
_COMMENTS: Final = r"(?>(?:[ \t\n\r]++|//[^\n{]*+\n|/\*[^*{]*+\*/)*)"
_OBJECT: Final = rf"\{{{_COMMENTS}(?:{QUOTED}|{BARE_WORD}){BLANK}:"
_SCALAR: Final = rf"(?:{QUOTED}|{NUMBER}|[tT]rue|[fF]alse|null|None){BEHIND_A_SCALAR}"
_ARRAY: Final = rf"\[(?:[\[ \t\n\r]{{0,64}}+(?:{_OBJECT}|{_SCALAR}|\{{{BLANK}\}})|{BLANK}\[{BLANK}\])"
_OPENING: Final = re.compile(
    # A row of backquotes is tried only at its first backquote, else a long row would be scanned from each.
    rf"(?P<alone>\A|(?<![`~]){_FENCE}[ \t]*+[\w.+-]*+{BLANK})(?=[{{\[])"
    rf"|(?>(?P<key>[\"']{BLANK}:{BLANK})?)(?={_OBJECT}|{_ARRAY})"
)
_MAYBE_PROSE: Final = re.compile(rf"\{{{BLANK}{BARE_WORD}{BLANK}:|\[[\[ \t\n\r]{{0,64}}+/[/*]")
_AROUND: Final = "\ufeff \t\n\r"
_TEXT_END: Final = re.compile(rf"{BLANK}\Z")
_FENCE_END: Final = re.compile(rf"{BLANK}(?:{_FENCE}|\Z)")
_FENCE_ALONE: Final = re.compile(rf"\s*+(?:{_FENCE}[ \t]*+[\w.+-]*+\s*+)?")


@dataclass(frozen=True, slots=True)
class JsonCandidate:
    """A whole or broken JSON value that may be the answer, and the way in which it was read."""

    value: JsonValue
    rung: Rung
    mends: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    """The reasons why the candidate is no answer, whatever its value; empty for a possible answer."""


def whole_scalar(text: str) -> list[JsonCandidate]:
    """Return a list with the scalar if the whole text is one scalar; else, return an empty list."""
    bare = text.strip(_AROUND)
    try:
        return [JsonCandidate(json.loads(bare), "json")] if bare and bare[0] not in "[{" else []
    except ValueError:
        return []


def values_in(text: str) -> Iterator[JsonCandidate]:
    """Yield the outermost arrays and objects of a text in their order, including broken values.

    An empty `[]` or `{}` is yielded only if the text holds nothing else.
    """
    text = text.strip(_AROUND)
    for opening, reading in _readings_in(text):
        ends_text, ends_fence = _TEXT_END.match(text, reading.end), _FENCE_END.match(text, reading.end)
        rung: Rung = "embedded"
        if reading.mends:
            rung = "mended"
        elif opening.end() == 0 and ends_text:
            rung = "json"
        elif opening.end() > 0 and opening["alone"] and ends_fence:
            rung = "fence"
        if opening["key"]:
            yield JsonCandidate(None, rung, faults=("it is a part of a larger value that is broken",))
        elif reading.value or reading.faults or rung != "embedded":
            yield JsonCandidate(reading.value, rung, reading.mends, reading.faults)


def value_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the beginning and the end of each outermost array or object of a text; leave out broken ones."""
    for opening, reading in _readings_in(text):
        if reading.value is not None:
            yield opening.end(), reading.end


def is_alone(text: str) -> bool:
    """Return whether a text is one array or object, perhaps in a fence, without other words."""
    text = text.strip(_AROUND)
    spans = list(islice(value_spans(text), 2))
    outside = [part for start, end in spans for part in (text[:start], text[end:])]
    return len(spans) == 1 and all(map(_FENCE_ALONE.fullmatch, outside))


def _readings_in(text: str) -> Iterator[tuple[re.Match[str], Reading]]:
    """Read the text at each place where an array or an object may begin; yield the match and what was read."""
    at = broken_until = 0
    while opening := _OPENING.search(text, at):
        start = opening.end()
        may_be_prose = _MAYBE_PROSE.match(text, start) is not None
        if may_be_prose and start < broken_until:
            at = start + 1
            continue
        reading = read_json(text, start)
        at = reading.end
        if may_be_prose and reading.value is None:
            # It may be a stray brace before `Answer: {...}`: the text behind it is read again.
            at, broken_until = start + 1, reading.end
        yield opening, reading
