"""The three pipes of a warm process: its supervisor holds their other ends, from turn to turn."""

import os
import select
import time

from septet.agents.supervisor.recorder import open_pipe
from septet.agents.supervisor.turn_stream import TurnStream

CHUNK_BYTES = 64 * 1024
FULL_DISK_SECONDS = 0.1
NONE = -1
READABLE = 0o444
"""By any user, as stdout and stderr can be written: see `recorder.py`."""


class WarmPipes:
    """What the agent reads and prints; none of it is lost between a pipe and the current turn's files."""

    def __init__(self, poller: select.poll, outputs: list[int]) -> None:
        """Wait with `poller`; `outputs` are the files of the current turn, and none between two of them."""
        self.stream = TurnStream()
        self.stdin = NONE
        self.output_numbers: dict[int, int] = {}
        """The ends of stdout and stderr: 0 and 1."""
        self._poller = poller
        self._outputs = outputs
        self._pending_output = [b"", b""]
        self._pending_input = b""

    def open(self) -> tuple[int, ...]:
        """Make them, and return the agent's ends."""
        stdin, self.stdin = os.pipe()
        os.fchmod(stdin, READABLE)
        pairs = [open_pipe(), open_pipe()]
        self.output_numbers = {pair[0]: number for number, pair in enumerate(pairs)}
        for descriptor in (self.stdin, *self.output_numbers):
            os.set_blocking(descriptor, False)
        self.watch()
        return (stdin, *(pair[1] for pair in pairs))

    def watch(self) -> None:
        """Have the poller wake up for what the agent prints."""
        for descriptor in self.output_numbers:
            self._poller.register(descriptor, select.POLLIN)

    def unwatch(self) -> None:
        """Have the poller sleep on, whatever happens to these."""
        for descriptor in self.output_numbers:
            self._poller.unregister(descriptor)

    def write_stdin(self, data: bytes = b"") -> None:
        """Write to the agent's stdin what it takes now; the rest follows when it takes more."""
        was_waiting, self._pending_input = bool(self._pending_input), self._pending_input + data
        try:
            while self._pending_input:
                self._pending_input = self._pending_input[os.write(self.stdin, self._pending_input) :]
        except BlockingIOError:
            self._poller.register(self.stdin, select.POLLOUT)
            return
        except OSError:  # it reads no more: how it ends is seen elsewhere
            self._pending_input = b""
        if was_waiting:
            self._poller.unregister(self.stdin)

    def read_output(self, descriptor: int) -> bool:
        """Take what was printed and say whether anything was; a full disk holds the agent up."""
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
        """Take all that was printed, by an agent that stands still or has ended."""
        for descriptor in tuple(self.output_numbers):
            while self.read_output(descriptor):
                continue

    def read_rest(self) -> None:
        """Take the rest of an agent that has ended."""
        self.read_outputs()
        self._write_output(0, self.stream.take_rest())

    def write_pending(self) -> bool:
        """Write what is not on disk yet, and say whether all is."""
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
