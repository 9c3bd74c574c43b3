import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from septet.agents.outcomes.stream import LINE_LIMIT_BYTES, EventReader


class Event(msgspec.Struct):
    type: Any = None
    n: Any = None


RESULT = b'{"n":1,"type":"result"}'

HOSTILE: dict[str, tuple[bytes, list[Any]]] = {
    "crlf": (b'{"type":"a"}\r\n{"type":"b"}\r\n', ["a", "b"]),
    "blank lines": (b'\n\n  \n{"type":"a"}\n\t\n{"type":"b"}\n\n', ["a", "b"]),
    "byte order mark": (b'\xef\xbb\xbf{"type":"a"}\n{"type":"b"}\n', ["a", "b"]),
    "line separator in a string": ('{"type":"a\u2028\u2029\x85b"}\n'.encode(), ["a\u2028\u2029\x85b"]),
    "line separator after an object": ('{"type":"a"}\u2028\n{"type":"b"}\n'.encode(), ["a", "b"]),
    "an array of events among lines": (b'{"type":"a"}\n[{"type":"b"}]\n', ["a"]),
    "binary": (b'\x00\xff\xfe\n{"type":"a"}\n\x80', ["a"]),
    "invalid utf-8 in what is read": (b'{"type":"a\xff"}\n', ["a\ufffd"]),
    "half a surrogate pair in what is read": (b'{"type":"a\\ud83d"}\n', ["a?"]),
    "no number": (b'{"n":NaN,"type":"a"}\n{"n":1e999,"type":"b"}\n', ["a", "b"]),
    "a raw control character": (b'{"type":"a","x":"\x01\x02"}\n', ["a"]),
    "two objects on a line": (b'{"type":"a"}{"type":"b"} {"type":"c"}\n', ["a", "b", "c"]),
    "an object and words": (b'{"type":"a"} and more\n', ["a"]),
    "words with braces and quotes": (b'log {"x": "y\\" } {"type":"a","x":{"y":"}\\"{"}}\r\n', ["a"]),
    "a title": (b'\x1b]0;fix "this" {now\x07{"type":"a"}\n\x1b[?25l\x1b[2K{"type":"b"}', ["a", "b"]),
    "a title after an event": (b'{"type":"a"}\x1b]0;x\x07{"type":"b"}\x1b]0;x\x07\n{"type":"c"}\n', ["a", "c"]),
    "an event that was cut off before another": (b'{"type":"a","x":"y{"type":"b"}\n', ["b"]),
    "an event that is quoted": (
        b'He said "{\\"type\\":\\"a\\"}"\n{"type":"b","x":"{\\"type\\":\\"a\\"}"}\n',
        ["b"],
    ),
    "an event in the midst of words": (b'It was {"type":"a"}, he said.\n"{"type":"a"}"\n', []),
    "an event that another holds": (
        b'log {"type":"a","x":{"type":"b"}}\nlog {"type":"c","x":[{"type":"b"}]\n',
        ["a"],
    ),
    "a truncated line before another": (b'{"type":"a","x":{\n{"type":"b"}\n', ["b"]),
    "nested too deep": (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b'}\n{"type":"a"}\n', ["a"]),
}


def read(stream: bytes, size: int = 1 << 20) -> tuple[list[Any], EventReader[Event]]:
    taken: list[Event] = []
    reader = EventReader(Event)
    for start in range(0, len(stream), size):
        taken += reader.feed(stream[start : start + size])
    rest, document = reader.finish()
    taken += rest
    return [event.type for event in (taken if document is None else document)], reader


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("size", [1, 7, 65_536, 1 << 20])
def test_a_hostile_stream_loses_no_event(name: str, size: int) -> None:
    """Each event is read once and in order, whatever stands between the events and however the bytes are cut."""
    stream, expected = HOSTILE[name]
    if len(stream) > 10_000 and size < 100:
        size = 1000
    assert expected == read(stream, size)[0]


@pytest.mark.parametrize("indent", [None, 2])
def test_one_document_is_a_stream(indent: int | None) -> None:
    """A stream that is one object is one event; one array holds its events, and other values in it are skipped."""
    one = {"type": "a", "usage": {"n": 3}, "list": [{"type": "inner"}]}
    assert read(json.dumps(one, indent=indent).encode() + b"\n", 3)[0] == ["a"]
    assert read(b"\xef\xbb\xbf" + json.dumps([one, 42, None, {"type": "b"}], indent=indent).encode(), 5)[0] == [
        "a",
        "b",
    ]
    assert read(b'[\n{"type":"a"},\n{"type":"b"}\n]\n')[0] == ["a", "b"]


def test_a_long_line_is_skipped_and_counted() -> None:
    """A line over 16 MiB is counted, a line of exactly 16 MiB is read, and a document over 16 MiB is skipped."""
    line = b'{"type":"a","x":""}'
    most = line.replace(b'""', b'"' + b"x" * (LINE_LIMIT_BYTES - len(line)) + b'"')
    types, reader = read(most + b"\n" + most.replace(b"a", b"aa", 1) + b'\n{"type":"b"}')
    assert (types, reader.skipped_lines) == (["a", "b"], 1)
    assert read(b'{\n"x": "' + b"x" * LINE_LIMIT_BYTES + b'",\n"type":"a"\n}')[0] == []


def test_what_is_no_event_is_kept_as_words() -> None:
    """The end of the output that is no event is kept, up to 600 characters."""
    _, reader = read(b'Error: no such flag\n\n{"type":"a"}\n' + b"x" * 2000 + b"\n  see --help\n")
    assert reader.words.endswith("see --help")
    assert len(reader.words) <= 600


_LINES = st.one_of(
    st.builds(lambda value: json.dumps({"type": value}).encode(), st.text(max_size=5)),
    st.sampled_from(
        [b"42", b"", b"[]", b"{", b"}", b'{"type":', b"\xff\xfe", b'{"type":"a"}{"type":"b"}', b"words"]
    ),
    st.binary(max_size=10).map(lambda data: data.replace(b"\n", b"")),
)


@given(st.lists(_LINES, max_size=12), st.integers(min_value=1, max_value=40))
@example([b'{"type":"a"}{"type":"b"}', b"{", b"}"], 1)
@example([b'{"type":"a"}{"type":"b"}', b'{"x":{}', b"}"], 40)
def test_the_cut_of_the_bytes_does_not_matter(lines: list[bytes], size: int) -> None:
    """Any cut of a stream gives the same events as its lines one by one."""
    stream = b"\n".join([RESULT, *lines, RESULT])
    apart: list[Any] = []
    for line in (RESULT, *lines, RESULT):
        apart += read(line)[0] if not line.lstrip().startswith(b"[") else []
    assert apart == read(stream, size)[0] == read(stream)[0]
