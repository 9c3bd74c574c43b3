"""What a process that serves many turns reads and prints, cut into turns; the language is claude's stream-json.

Only a warm process's supervisor imports it, and with it `json`.
"""

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LINE_LIMIT_BYTES = 16 * 1024 * 1024
"""A longer line is passed on unread, as the reader of the stream skips it too."""
_NOTHING: "dict[str, Any]" = {}


class TurnStream:
    """The stdout of one process: it says which bytes are the current turn's, and when the turn is over."""

    def __init__(self) -> None:
        """Begin before the first turn."""
        self.over = False
        """The result of the current turn was printed."""
        self.failed = False
        """That result says that it is none."""
        self._mark = ""
        self._held = bytearray()
        self._passing = False
        self._taken_up = True
        self._echoes = False

    def begin(self, prompt: bytes, mark: str) -> bytes:
        """Begin a turn and return the line for the process's stdin.

        Args:
            prompt: What is asked.
            mark: A UUID that the process repeats where it takes the turn up.
        """
        self.over = self.failed = False
        self._mark, self._taken_up = mark, not self._echoes
        message = {"role": "user", "content": prompt.decode("utf-8", "replace")}
        return json.dumps({"type": "user", "message": message, "uuid": mark}).encode() + b"\n"

    def take(self, data: bytes) -> bytes:
        """Take what was printed and return what of it is to be kept: whole lines, for a half one may be dropped.

        A result from before the turn was taken up is no answer to it: the process had gone on by itself. Only the
        first turn of a process is not marked out by that, for nothing can come before it.
        """
        kept = bytearray()
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._held += line + b"\n"
            kept += self._ended_line()
        self._held += rest
        if len(self._held) > LINE_LIMIT_BYTES:
            self._passing = True
        if self._passing:
            kept += self._take_held()
        return bytes(kept)

    def rest(self) -> bytes:
        """Return a last line that has no end."""
        return self._take_held()

    def _ended_line(self) -> bytes:
        line, passing = self._take_held(), self._passing
        self._passing = False
        event = _NOTHING if passing else self._event(line)
        if event.get("type") == "user" and event.get("uuid") == self._mark:
            self._taken_up = self._echoes = True
        elif event.get("type") == "result" and event.get("parent_tool_use_id") is None:
            if not self._taken_up:
                return b""
            self.over, self.failed = True, event.get("is_error") not in (None, False)
        return line

    def _take_held(self) -> bytes:
        line = bytes(self._held)
        self._held.clear()
        return line

    def _event(self, line: bytes) -> "dict[str, Any]":
        """Return an event that may begin or end a turn, and nothing for any other."""
        if b'"result"' not in line and self._mark.encode() not in line:
            return _NOTHING
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return _NOTHING
        return event if isinstance(event, dict) else _NOTHING
