"""What a process that serves many turns reads and prints, cut into turns; the language is claude's stream-json."""

import json

from septet.agents.processes.event_lines import object_at_end

LINE_LIMIT_BYTES = 16 * 1024 * 1024
"""A longer line is passed on unread, as the reader of the stream skips it too."""
_NO_EVENT: dict[str, object] = {}


class TurnStream:
    """The stdout of one process: it says which bytes are the current turn's, and when the turn is over."""

    def __init__(self) -> None:
        """Begin before the first turn."""
        self.is_over = False
        """The result of the current turn was printed, and it has begun nothing in the background."""
        self.has_failed = False
        """That result says that it is none."""
        self._tasks: set[object] = set()
        """Tasks of the turn for which the process may go on after a result: its end is then not for us to see."""
        self._mark = ""
        self._partial_line = bytearray()
        self._is_too_long = False
        self._is_taken_up = True
        self._echoes_prompts = False

    def begin_turn(self, prompt: bytes, mark: str) -> bytes:
        """Begin a turn and return the line for the process's stdin.

        Args:
            prompt: The prompt of the turn.
            mark: A UUID that the process repeats where it takes the turn up.
        """
        self.is_over = self.has_failed = False
        self._tasks.clear()
        self._mark, self._is_taken_up = mark, not self._echoes_prompts
        message = {"role": "user", "content": prompt.decode("utf-8", "replace")}
        return json.dumps({"type": "user", "message": message, "uuid": mark}).encode() + b"\n"

    def take_output(self, data: bytes) -> bytes:
        """Take what was printed and return what of it is the turn's: whole lines, for a half one may be dropped.

        A result from before the turn was taken up is no answer to it: the process had gone on by itself. Only the
        first turn of a process is not marked out by that, for nothing can come before it.
        """
        turn_output = bytearray()
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._partial_line += line + b"\n"
            turn_output += self._take_line()
        self._partial_line += rest
        if len(self._partial_line) > LINE_LIMIT_BYTES:
            self._is_too_long = True
        if self._is_too_long:
            turn_output += self.take_rest()
        return bytes(turn_output)

    def _take_line(self) -> bytes:
        line, is_too_long = self.take_rest(), self._is_too_long
        self._is_too_long = False
        event = _NO_EVENT if is_too_long else self._read_event(line)
        if event.get("type") == "user" and event.get("uuid") == self._mark:
            self._is_taken_up = self._echoes_prompts = True
        elif event.get("type") == "result" and event.get("parent_tool_use_id") is None:
            if not self._is_taken_up:
                return b""
            self.has_failed = event.get("is_error") not in (None, False)
            self.is_over = self.has_failed or not self._tasks
        elif event.get("type") == "system":
            self._take_task(event)
        return line

    def _take_task(self, event: dict[str, object]) -> None:
        """Note a task that begins in the background or comes there; or that may have, and is not over yet."""
        task, kind = event.get("task_id"), event.get("subtype")
        patch = event.get("patch") if kind == "task_updated" else event if kind == "task_started" else {}
        in_background = patch.get("is_backgrounded") if isinstance(patch, dict) else None
        if in_background or (kind == "task_started" and in_background is None):
            self._tasks.add((task, in_background))
        elif kind == "task_notification":
            self._tasks.discard((task, None))

    def take_rest(self) -> bytes:
        """Take the line that has not ended yet."""
        line = bytes(self._partial_line)
        self._partial_line.clear()
        return line

    def _read_event(self, line: bytes) -> dict[str, object]:
        """Return an event that may begin or end a turn or that reports a task; nothing for any other event."""
        if b'"result"' not in line and b'"task_' not in line and self._mark.encode() not in line:
            return _NO_EVENT
        return _read_object(line) or _read_object(object_at_end(line), ends_line=True)


def _read_object(text: bytes, *, ends_line: bool = False) -> dict[str, object]:
    """Return an object, and nothing for anything else; one that only ends its line has to name its session."""
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return _NO_EVENT
    return event if isinstance(event, dict) and not (ends_line and "session_id" not in event) else _NO_EVENT
