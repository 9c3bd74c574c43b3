"""The reader of JSON values, compared with Python's own `json` for strict JSON."""

import json
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from septet.answers.json_reader import MAX_DEPTH, Reading, read_json

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
CONTAINERS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
).filter(lambda value: isinstance(value, list | dict))
STRUCTURE = "[]{}\"':,\\/* \n0-1.eEtrufalsn"


class NotStrictError(ValueError):
    """The text is no strict JSON, although `json` reads it."""


def unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    if any(one == other for one, other in pairwise(sorted(key for key, _ in pairs))):
        raise NotStrictError
    return dict(pairs)


def finite(number: str) -> float:
    if not math.isfinite(float(number)):
        raise NotStrictError
    return float(number)


def strictly(text: str) -> JsonValue:
    value: JsonValue = json.loads(text, object_pairs_hook=unique, parse_float=finite, parse_constant=finite)
    return value


def is_strict(reading: Reading, text: str) -> bool:
    return not reading.faults and not reading.mends and not text[reading.end :].strip(" \t\r\n")


@given(CONTAINERS, st.sampled_from([None, 0, 3, "\t"]), st.booleans())
def test_strict_json_is_read_as_python_reads_it(
    value: JsonValue, indent: int | str | None, ascii_only: bool
) -> None:
    """The reader reads the output of `json` to the same value, up to the last character."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert read_json(text) == Reading(json.loads(text), len(text))


@given(CONTAINERS, st.data())
def test_broken_json_is_strict_exactly_where_python_says_so(value: JsonValue, data: st.DataObject) -> None:
    """After any change of a text, the reader and `json` agree on its value and on whether it is strict JSON."""
    text = json.dumps(value)
    at = data.draw(st.integers(1, len(text)))
    changed = text[:at] + data.draw(st.text(STRUCTURE, max_size=3)) + text[at + data.draw(st.integers(0, 2)) :]
    reading = read_json(changed)
    try:
        expected = strictly(changed)
    except ValueError:
        assert not is_strict(reading, changed)
    else:
        assert is_strict(reading, changed)
        assert reading.value == expected


@given(st.sampled_from("[{"), st.text(STRUCTURE, max_size=60))
def test_the_reader_always_gets_on(bracket: str, rest: str) -> None:
    """The reader always ends after the first bracket, so that a search through a text ends."""
    text = bracket + rest
    assert 0 < read_json(text).end <= len(text)


@pytest.mark.parametrize(
    ("text", "value", "mends"),
    [
        ("[1,]", [1], ("trailing comma",)),
        ("['a']", ["a"], ("single quotes",)),
        (r"""['it\'s "so" \\']""", ['it\'s "so" \\'], ("single quotes",)),
        ("[True, False, None]", [True, False, None], ("Python literal",)),
        ('["a\nb\tc\\n"]', ["a\nb\tc\n"], ("raw newline or tab in a string",)),
        ("[1, // one, ]\n 2]", [1, 2], ("comment",)),
        ("[1 /* ] **/ , 2]", [1, 2], ("comment",)),
        ('["http://x//y"]', ["http://x//y"], ()),
    ],
)
def test_slips_are_read_past_and_named(text: str, value: JsonValue, mends: tuple[str, ...]) -> None:
    """The reader repairs and names each slip whose meaning is clear."""
    assert read_json(text) == Reading(value, len(text), mends)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[NaN]", "NaN is not JSON"),
        ("[1e999]", "a number too large"),
        ("[" + "9" * 5000 + "]", "a number too large"),
        ('{"a": 1, "a": 1}', "the key 'a' occurs twice"),
        ("{a: 1}", "a key without quotes"),
    ],
)
def test_faults_do_not_hide_where_a_value_ends(text: str, fault: str) -> None:
    """A value with a fault is read to its end, so that no part of it counts as another value."""
    reading = read_json(text + ' {"b": 2}')
    assert reading.faults == (fault,)
    assert reading.end == len(text)


@pytest.mark.parametrize(
    ("text", "at", "cause"),
    [
        ("[1 2]", 3, ""),
        ("[1, , 2]", 4, "a comma with nothing before it"),
        ('{"a", 1}', 4, "a value where a key belongs"),
        ("[1}", 2, "the wrong bracket"),
        ('{"a": yes}', 9, "a word without quotes"),
        ('["a"b]', 1, "a string that does not end, or a quote in it that is not escaped"),
        ("[/* 1]", 1, ""),
        ("[" * (MAX_DEPTH + 1), MAX_DEPTH, f"more than {MAX_DEPTH} brackets inside one another"),
    ],
)
def test_what_breaks_says_where_and_why(text: str, at: int, cause: str) -> None:
    """The fault names the place where a text stops being JSON, and the likely cause."""
    reading = read_json(text)
    assert (reading.value, reading.end) == (None, at)
    near = f"it is broken {at} characters on, near {text[at : at + 24]!r}"
    assert reading.faults == (f"{near}: {cause}" if cause else near,)
