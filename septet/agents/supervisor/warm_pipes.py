"""The pipes of a warm process for stdin, stdout and stderr, which stay open between turns."""

import json
import os
import select
import time

from septet.agents.processes.event_lines import object_at_end
from septet.agents.supervisor.recorder import open_pipe

LINE_LIMIT_BYTES = 16 * 1024 * 1024
"""The longest line that is parsed; a longer line is passed on unread, and readers of the stream skip it."""
_NO_EVENT: dict[str, object] = {}


class TurnStream:
    """Reads the stdout of a warm process: finds the output of the current turn, and the turn's end."""

    def __init__(self) -> None:
        self.is_over = False
        """Whether the current turn's result was printed and no background task runs."""
        self.has_failed = False
        """Whether the current turn's result reports an error."""
        self._tasks: set[object] = set()
        """The tasks for which the process may continue after a result; the supervisor cannot see when they end."""
        self._mark = ""
        self._partial_line = bytearray()
        self._is_too_long = False
        self._is_taken_up = True
        self._echoes_prompts = False

    def begin_turn(self, prompt: bytes, mark: str) -> bytes:
        """Begin a turn; return the line for stdin. The process prints the UUID `mark` when it begins the turn."""
        self.is_over = self.has_failed = False
        self._tasks.clear()
        self._mark, self._is_taken_up = mark, not self._echoes_prompts
        message = {"role": "user", "content": prompt.decode("utf-8", "replace")}
        return json.dumps({"type": "user", "message": message, "uuid": mark}).encode() + b"\n"

    def take_output(self, data: bytes) -> bytes:
        """Take new output, and return the whole lines that belong to the current turn.

        A result that comes before the UUID of the turn is dropped, because it belongs to earlier work of the
        process. A process's first turn does not wait for the UUID.
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
        """Add a task that may run in the background; forget an ended task if no event put it in the background."""
        task, kind = event.get("task_id"), event.get("subtype")
        patch = event.get("patch") if kind == "task_updated" else event if kind == "task_started" else {}
        in_background = patch.get("is_backgrounded") if isinstance(patch, dict) else None
        if in_background or (kind == "task_started" and in_background is None):
            self._tasks.add((task, in_background))
        elif kind == "task_notification":
            self._tasks.discard((task, None))

    def take_rest(self) -> bytes:
        """Return the incomplete last line, and forget the line."""
        line = bytes(self._partial_line)
        self._partial_line.clear()
        return line

    def _read_event(self, line: bytes) -> dict[str, object]:
        """Return the event on a line if it may begin or end a turn, or report a task; else an empty object."""
        if b'"result"' not in line and b'"task_' not in line and self._mark.encode() not in line:
            return _NO_EVENT
        return _read_object(line) or _read_object(object_at_end(line), ends_line=True)


def _read_object(text: bytes, *, ends_line: bool = False) -> dict[str, object]:
    """Return the JSON object `text`; with `ends_line`, it must have a `session_id`. Empty for any other text."""
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return _NO_EVENT
    return event if isinstance(event, dict) and not (ends_line and "session_id" not in event) else _NO_EVENT


CHUNK_BYTES = 64 * 1024
FULL_DISK_SECONDS = 0.1
READABLE = 0o444
"""The mode of stdin's pipe: any user may read; see `WRITABLE` in `recorder.py`."""


class WarmPipes:
    """An agent's pipes: one to its stdin, and two from its stdout and stderr to the files of the current turn."""

    def __init__(self, poller: select.poll, outputs: list[int]) -> None:
        """Take the poller, and the list of the current turn's files, which is empty between turns."""
        self.stream = TurnStream()
        self.stdin = -1
        self.output_numbers: dict[int, int] = {}
        """The numbers of stdout and stderr, 0 and 1, by the descriptor of the pipe's end."""
        self._poller = poller
        self._outputs = outputs
        self._pending_output = [b"", b""]
        self._pending_input = b""

    def open(self) -> tuple[int, ...]:
        """Make the pipes; return the agent's ends, for stdin, stdout and stderr."""
        stdin, self.stdin = os.pipe()
        os.fchmod(stdin, READABLE)
        pairs = [open_pipe(), open_pipe()]
        self.output_numbers = {pair[0]: number for number, pair in enumerate(pairs)}
        for descriptor in (self.stdin, *self.output_numbers):
            os.set_blocking(descriptor, False)
        self.watch()
        return (stdin, *(pair[1] for pair in pairs))

    def watch(self) -> None:
        """Make the agent's output wake the poller."""
        for descriptor in self.output_numbers:
            self._poller.register(descriptor, select.POLLIN)

    def unwatch(self) -> None:
        """Make the poller ignore the agent's output."""
        for descriptor in self.output_numbers:
            self._poller.unregister(descriptor)

    def write_stdin(self, data: bytes = b"") -> None:
        """Write to the agent's stdin as much as fits; keep the rest until the pipe has room."""
        was_waiting, self._pending_input = bool(self._pending_input), self._pending_input + data
        try:
            while self._pending_input:
                self._pending_input = self._pending_input[os.write(self.stdin, self._pending_input) :]
        except BlockingIOError:
            self._poller.register(self.stdin, select.POLLOUT)
            return
        except OSError:  # the agent reads no more: its end is detected elsewhere
            self._pending_input = b""
        if was_waiting:
            self._poller.unregister(self.stdin)

    def read_output(self, descriptor: int) -> bool:
        """Read new output into the turn's file; return whether any output came. On a full disk, read nothing."""
        if not self.write_pending():
            time.sleep(FULL_DISK_SECONDS)
            return False
        try:
            data = os.read(descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return False
        number = self.output_numbers[descriptor]
        if not data:
            self._poller.unregister(descriptor)
            del self.output_numbers[descriptor]
            return False
        self._write_output(number, self.stream.take_output(data) if number == 0 else data)
        return True

    def read_outputs(self) -> None:
        """Read all output of an agent that is stopped or has ended."""
        for descriptor in tuple(self.output_numbers):
            while self.read_output(descriptor):
                continue

    def read_rest(self) -> None:
        """Read the rest of the output of an ended agent, including an incomplete last line."""
        self.read_outputs()
        self._write_output(0, self.stream.take_rest())

    def write_pending(self) -> bool:
        """Write pending output to the turn's files; return whether all output is written."""
        pending = self._pending_output
        for number, output in enumerate(self._outputs):
            try:
                while pending[number]:
                    pending[number] = pending[number][os.write(output, pending[number]) :]
            except OSError:
                return False
        return True

    def _write_output(self, number: int, data: bytes) -> None:
        self._pending_output[number] += data
        self.write_pending()
