"""Find the JSON values that stand in a text: alone, in a fence, or in the midst of prose.

The text is walked once. What was read as part of a value is not looked at again, whether that value is whole or
broken: the time is linear, and nothing inside a wrapper or a cut-off object passes for an answer of its own.
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
"""How an answer was read, in the order in which the ways are trusted."""

_FENCE: Final = r"(?:`{3,}+|~{3,}+)"
# In prose only a bracket with something of JSON behind it is read. Others are passed over here, at the speed of
# the regular expression, and so are rows of brackets that are longer than any answer's. No part of a text is
# scanned for two brackets: a string ends at the next quote, and a comment before a key at the next brace.
_COMMENTS: Final = r"(?>(?:[ \t\n\r]++|//[^\n{]*+\n|/\*[^*{]*+\*/)*)"
_OBJECT: Final = rf"\{{{_COMMENTS}(?:{QUOTED}|{BARE_WORD}){BLANK}:"
_SCALAR: Final = rf"(?:{QUOTED}|{NUMBER}|[tT]rue|[fF]alse|null|None){BEHIND_A_SCALAR}"
_ARRAY: Final = rf"\[(?:[\[ \t\n\r]{{0,64}}+(?:{_OBJECT}|{_SCALAR}|\{{{BLANK}\}})|{BLANK}\[{BLANK}\])"
_OPENING: Final = re.compile(
    # A row of backquotes is tried at its first one only, else a long row would be scanned from each of them.
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
    """A JSON value, or what was begun as one, and how it stands in its text."""

    value: JsonValue
    rung: Rung
    mends: tuple[str, ...] = ()
    """The slips of syntax that were read past."""
    faults: tuple[str, ...] = ()
    """Why it is no answer, whatever its value; empty for a candidate."""


def whole_scalar(text: str) -> list[JsonCandidate]:
    """Return the scalar that is the whole text, or nothing; a string may hold the answer once more encoded."""
    bare = text.strip(_AROUND)
    try:
        return [JsonCandidate(json.loads(bare), "json")] if bare and bare[0] not in "[{" else []
    except ValueError:
        return []


def values_in(text: str) -> Iterator[JsonCandidate]:
    """Yield the outermost arrays and objects of a text in their order, the broken ones as well.

    An empty `[]` or `{}` says something only where it stands alone; in prose it is passed over.
    """
    text = text.strip(_AROUND)
    for opening, reading in _readings_in(text):
        rung = _rung(text, opening, reading)
        if opening["key"]:
            yield JsonCandidate(None, rung, faults=("it is a part of a larger value that is broken",))
        elif reading.value or reading.faults or rung != "embedded":
            yield JsonCandidate(reading.value, rung, reading.mends, reading.faults)


def value_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the outermost whole arrays and objects of a text begin and end, in their order."""
    for opening, reading in _readings_in(text):
        if reading.value is not None:
            yield opening.end(), reading.end


def is_alone(text: str) -> bool:
    """Say whether a text is one array or object and nothing else, but perhaps a fence around it."""
    text = text.strip(_AROUND)
    spans = list(islice(value_spans(text), 2))
    outside = [part for start, end in spans for part in (text[:start], text[end:])]
    return len(spans) == 1 and all(map(_FENCE_ALONE.fullmatch, outside))


def _readings_in(text: str) -> Iterator[tuple[re.Match[str], Reading]]:
    """Yield what is read at each place of a text where an array or an object may begin."""
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
            # A stray brace before `Answer: {...}`, say: what stands behind it is looked at once more.
            at, broken_until = start + 1, reading.end
        yield opening, reading


def _rung(text: str, opening: re.Match[str], reading: Reading) -> Rung:
    if reading.mends:
        return "mended"
    if opening.end() == 0:
        return "json" if _TEXT_END.match(text, reading.end) else "embedded"
    return "fence" if opening["alone"] and _FENCE_END.match(text, reading.end) else "embedded"
