"""The reader of a stream: bytes in any chunking become events, in memory that does not grow with the stream."""

import json
import math
import re
from typing import Final, Generic, TypeVar

import msgspec

LINE_LIMIT_BYTES: Final = 16 * 1024 * 1024
"""A longer line is skipped to its newline and counted; a whole document is read up to this size."""

E = TypeVar("E", bound=msgspec.Struct)

_PIECE_BYTES: Final = 1024 * 1024
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_NO_EVENT: Final = (ValueError, RecursionError)
"""What msgspec and json raise for bytes that are no JSON, no UTF-8, no object, or nested too deep."""
_BLANKS: Final = re.compile(r"\s*")


class EventReader(Generic[E]):
    """Turns lines of JSON into events of one partial type; what is no JSON object is passed over.

    A line decodes straight into the fields that `event_type` names and the rest is skipped in C; only a line that does
    not decode is looked at again, slowly. A stream that is one object or one array over several lines is no stream of
    lines: its events are in `document()`, once it has ended.
    """

    def __init__(self, event_type: type[E]) -> None:
        """Take the partial type of an event; its fields are best `Any` or `msgspec.Raw`, which refuse nothing."""
        self.skipped_lines = 0
        """Lines over 16 MiB."""
        self._decode = msgspec.json.Decoder(event_type).decode
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._skipping = False
        self._document: bytearray | None = bytearray()
        self._first_line: bytes | None = None

    def feed(self, chunk: bytes) -> list[E]:
        """Return the events that `chunk` completes."""
        if len(chunk) > _PIECE_BYTES:
            pieces = (chunk[start : start + _PIECE_BYTES] for start in range(0, len(chunk), _PIECE_BYTES))
            return [event for piece in pieces for event in self.feed(piece)]
        self._keep_for_document(chunk)
        lines = chunk.split(b"\n")
        last = lines.pop()
        if lines:
            self._hold(lines[0])
            lines[0] = self._take_held()
        self._hold(last)
        return self._events(lines)

    def finish(self) -> list[E]:
        """Return the events of a last line that has no newline."""
        return self._events([self._take_held()])

    def document(self) -> list[E] | None:
        """Return the events of a stream that was one JSON document over several lines; `None` for any other."""
        if self._document is None or self._first_line is None:
            return None
        if self._document.startswith(_BYTE_ORDER_MARK):
            del self._document[: len(_BYTE_ORDER_MARK)]
        try:
            if self._first_line.startswith(b"["):
                elements = msgspec.json.decode(self._document, type=list[msgspec.Raw])
                return [event for element in elements for event in self._events([bytes(element)])]
            return [self._decode(self._document)]
        except _NO_EVENT:
            return None

    def _hold(self, part: bytes) -> None:
        """Keep a part of a line whose end has not come, up to the limit."""
        if self._skipping:
            return
        self._held_bytes += len(part)
        if self._held_bytes > LINE_LIMIT_BYTES:
            self._skipping = True
            self.skipped_lines += 1
            self._held = []
        else:
            self._held.append(part)

    def _take_held(self) -> bytes:
        line = b"".join(self._held)
        self._held, self._held_bytes, self._skipping = [], 0, False
        return line

    def _events(self, lines: list[bytes]) -> list[E]:
        if self._first_line is None:
            self._look_at_first(lines)
        events: list[E] = []
        add, decode = events.append, self._decode
        for line in lines:
            try:
                add(decode(line))
            except _NO_EVENT:
                events.extend(self._mended(line))
        return events

    def _mended(self, line: bytes) -> list[E]:
        """Return the objects at the head of a line that does not decode as it stands.

        It may hold a byte order mark, bytes that are not UTF-8, half a surrogate pair, a number that is none, two
        objects, or an object and words after it.
        """
        text = line.strip().removeprefix(_BYTE_ORDER_MARK).decode("utf-8", errors="replace")
        events: list[E] = []
        position = 0
        while text.startswith("{", position):
            try:
                value, position = _FORGIVING.raw_decode(text, position)
                events.append(self._decode(json.dumps(value, ensure_ascii=False).encode("utf-8", errors="replace")))
            except _NO_EVENT:
                break
            position = _end_of_blanks(text, position)
        return events

    def _keep_for_document(self, chunk: bytes) -> None:
        if self._document is None:
            return
        self._document += chunk
        if len(self._document) > LINE_LIMIT_BYTES:
            self._document = None

    def _look_at_first(self, lines: list[bytes]) -> None:
        """Decide by the first line that is not blank whether the stream can be one document."""
        for line in lines:
            first = line.strip().removeprefix(_BYTE_ORDER_MARK)
            if first:
                self._first_line = first[:1]
                if not first.startswith((b"{", b"[")) or self._mended(first):
                    self._document = None
                return


def _end_of_blanks(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    return blanks.end() if blanks else position


def _finite(number: str) -> float | None:
    value = float(number)
    return value if math.isfinite(value) else None


_FORGIVING: Final = json.JSONDecoder(strict=False, parse_constant=lambda _: None, parse_float=_finite)
