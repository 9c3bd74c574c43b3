"""Turn the bytes of a stream into events; the memory used does not grow with the stream."""

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

import msgspec

from septet.agents.processes.event_lines import object_at_end
from septet.system.masking import mask, mask_bytes

LINE_LIMIT_BYTES: Final = 16 * 1024 * 1024
"""The size of the longest line and document that is read; a longer line is skipped to its newline and counted."""

E = TypeVar("E")
T = TypeVar("T")

_PIECE_BYTES: Final = 64 * 1024
"""How many bytes to read at once: pieces that fit into the processor's cache are read twice as fast."""
_WORDS_KEPT: Final = 600
DETAIL_LIMIT: Final = 160
"""The longest detail of a tool call or a missing tool, in characters."""
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_NO_EVENT: Final = (ValueError, RecursionError)
"""The errors of msgspec and json for bytes that are no JSON, no UTF-8, no object, or nested too deep."""
_BLANKS: Final = re.compile(r"\s*")


class EventReader(Generic[E]):
    """Turns lines of JSON into events of one type, and skips text that is no JSON object.

    An event that follows other text has to end the line, and `is_own` has to accept the event. If the stream is
    one JSON document over several lines, `finish` returns the document's events.
    """

    def __init__(self, event_type: type[E], is_own: Callable[[E], bool] = lambda _: True) -> None:
        """Take the events' type; only its fields are read. A field of type `Any` or `msgspec.Raw` takes any value.

        `is_own` returns whether an event that follows other text is an event of this CLI.
        """
        self.skipped_lines = 0
        """The number of lines over 16 MiB."""
        self.words = ""
        """The end of the text in lines without events, with keys masked."""
        self.last: E | None = None
        self._decoder = msgspec.json.Decoder(event_type)
        self._is_own = is_own
        self._partial: list[bytes] = []
        self._partial_bytes = 0
        self._skipping = False
        self._document: bytearray | None = bytearray()
        self._first_line: bytes | None = None

    def feed(self, chunk: bytes) -> Iterator[E]:
        """Read the next bytes, which may be cut anywhere, and yield the events in them."""
        for start in range(0, len(chunk), _PIECE_BYTES):
            yield from self._feed_piece(chunk[start : start + _PIECE_BYTES])

    def finish(self) -> tuple[list[E], list[E] | None]:
        """Return the events of a last line without a newline, and the events of a document.

        The second value is `None` for a stream of lines. Otherwise the stream was one JSON document over several
        lines, and the document's events replace all earlier events.
        """
        line = self._take_partial()
        rest = self._read_lines([line]) if line else []
        if self._document is None or self._first_line is None:
            return rest, None
        if self._document.startswith(_BYTE_ORDER_MARK):
            del self._document[: len(_BYTE_ORDER_MARK)]
        try:
            if self._first_line.startswith(b"["):
                elements = msgspec.json.decode(self._document, type=list[msgspec.Raw])
                events = [event for element in elements for event in self._read_objects(bytes(element))[0]]
            else:
                events = [self._decoder.decode(self._document)]
        except _NO_EVENT:
            return rest, None
        self.last = events[-1] if events else self.last
        return rest, events

    def _feed_piece(self, piece: bytes) -> list[E]:
        if self._document is not None:
            document = self._document
            if len(document) + len(piece) <= LINE_LIMIT_BYTES:
                document += piece
            else:
                self._document = None
        end_of_first, end_of_last = piece.find(b"\n"), piece.rfind(b"\n") + 1
        events: list[E] = []
        if end_of_last:
            self._append_partial(piece[:end_of_first])
            events = self._read_lines((self._take_partial() + piece[end_of_first : end_of_last - 1]).split(b"\n"))
        self._append_partial(piece[end_of_last:])
        return events

    def _append_partial(self, part: bytes) -> None:
        """Keep a part of an incomplete line, up to the limit of a line."""
        if self._skipping:
            return
        self._partial_bytes += len(part)
        if self._partial_bytes > LINE_LIMIT_BYTES:
            self._skipping = True
            self.skipped_lines += 1
            self._partial = []
        else:
            self._partial.append(part)

    def _take_partial(self) -> bytes:
        line = b"".join(self._partial)
        self._partial, self._partial_bytes, self._skipping = [], 0, False
        return line

    def _read_lines(self, lines: list[bytes]) -> list[E]:
        if self._first_line is None:
            self._check_first_line(lines)
        events: list[E] = []
        decode, add = self._decoder.decode, events.append
        for line in lines:
            try:
                add(decode(line))
            except _NO_EVENT:
                events += self._mend_line(line)
        self.last = events[-1] if events else self.last
        return events

    def _mend_line(self, line: bytes) -> list[E]:
        """Return the events in a line that does not decode as a whole."""
        events, rest = self._read_objects(line)
        if rest:
            events += filter(self._is_own, self._read_objects(object_at_end(rest))[0])
        words = mask_bytes(line)[-_WORDS_KEPT:].decode("utf-8", errors="replace").strip()
        if words and not events:
            self.words = f"{self.words}\n{words}"[-_WORDS_KEPT:].strip()
        return events

    def _read_objects(self, line: bytes) -> tuple[list[E], bytes]:
        """Return the objects at the beginning of a line, and the rest of the line.

        Faults are accepted: bytes that are not UTF-8, a byte order mark, half a surrogate pair, an invalid number,
        or two objects in a line.
        """
        text = line.strip().removeprefix(_BYTE_ORDER_MARK).decode("utf-8", errors="replace")
        events: list[E] = []
        position = 0
        while text.startswith("{", position):
            try:
                value, position = _FORGIVING.raw_decode(text, position)
                events.append(
                    self._decoder.decode(json.dumps(value, ensure_ascii=False).encode("utf-8", errors="replace"))
                )
            except _NO_EVENT:
                break
            blanks = _BLANKS.match(text, position)
            position = blanks.end() if blanks else position
        return events, text[position:].encode()

    def _check_first_line(self, lines: list[bytes]) -> None:
        """Decide whether the stream can be one JSON document, by the first line that is not blank."""
        for line in lines:
            first = line.strip().removeprefix(_BYTE_ORDER_MARK)
            if first:
                self._first_line = first[:1]
                if not first.startswith((b"{", b"[")) or self._read_objects(first)[0]:
                    self._document = None
                return


def read_field(raw: msgspec.Raw, decoder: msgspec.json.Decoder[T]) -> T | None:
    """Return the decoded value of a field; `None` if the field is missing or of another type."""
    try:
        return decoder.decode(raw)
    except _NO_EVENT:
        return None


def count(value: object) -> int:
    """Return `value` as an integer if it is a positive number, otherwise 0."""
    if type(value) is int and value > 0:  # a bool is of another type
        return value
    return int(value) if isinstance(value, float) and 0 < value < math.inf else 0


def cost_of(value: object) -> float | None:
    """Return `value` if it is a number that is not negative, otherwise `None`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < math.inf else None


def text_of(value: object) -> str | None:
    """Return `value` if it is a string, and `None` for any other value."""
    return value if isinstance(value, str) else None


def call_of(tool: object, arguments: object) -> str:
    """Return a tool call as `name(argument)`; the argument is the first text among the arguments."""
    values = arguments.values() if isinstance(arguments, dict) else ()
    words = next((value for value in values if isinstance(value, str)), "")
    detail = mask(" ".join(words.split()))[:DETAIL_LIMIT]
    return f"{tool}({detail})" if detail else str(tool)


class _Typed(msgspec.Struct):
    type: Any = None
    session_id: Any = None


def is_event(line: bytes | bytearray) -> bool:
    """Return whether a line is a JSON object with a `type`, or ends with such an object that names a session."""
    try:
        return isinstance(msgspec.json.decode(line, type=_Typed).type, str)
    except _NO_EVENT:
        event = read_field(msgspec.Raw(object_at_end(line)), _typed)
        return event is not None and isinstance(event.type, str) and isinstance(event.session_id, str)


_typed: Final = msgspec.json.Decoder(_Typed)


def _finite(number: str) -> float | None:
    value = float(number)
    return value if math.isfinite(value) else None


_FORGIVING: Final = json.JSONDecoder(strict=False, parse_constant=lambda _: None, parse_float=_finite)
