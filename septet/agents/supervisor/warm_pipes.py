"""The three pipes of a warm process: its supervisor holds their other ends, from turn to turn.

Part of the supervisor's program: it imports only small modules of the standard library, beside `json`.
"""

import os
import select
import time

from septet.agents.supervisor.turn_stream import TurnStream

CHUNK_BYTES = 64 * 1024
FULL_DISK_SECONDS = 0.1
NONE = -1


class WarmPipes:
    """What the agent reads and prints; none of it is lost between a pipe and the current turn's files."""

    def __init__(self, poller: select.poll, outputs: list[int]) -> None:
        """Wait with `poller`; `outputs` are the files of the current turn, and none between two of them."""
        self.stream = TurnStream()
        self.stdin = NONE
        self.printed: dict[int, int] = {}
        """The ends of stdout and stderr: 0 and 1."""
        self._poller = poller
        self._outputs = outputs
        self._unwritten = [b"", b""]
        self._unsaid = b""

    def open(self) -> tuple[int, ...]:
        """Make them, and return the agent's ends."""
        stdin, self.stdin = os.pipe()
        pairs = [os.pipe(), os.pipe()]
        self.printed = {pair[0]: number for number, pair in enumerate(pairs)}
        for descriptor in (self.stdin, *self.printed):
            os.set_blocking(descriptor, False)
        self.watch()
        return (stdin, *(pair[1] for pair in pairs))

    def watch(self) -> None:
        """Have the poller wake up for what the agent prints."""
        for descriptor in self.printed:
            self._poller.register(descriptor, select.POLLIN)

    def look_away(self) -> None:
        """Have the poller sleep on, whatever happens to these."""
        for descriptor in self.printed:
            self._poller.unregister(descriptor)

    def say(self, words: bytes = b"") -> None:
        """Write to the agent's stdin what it takes now; the rest is said when it takes more."""
        waiting, self._unsaid = bool(self._unsaid), self._unsaid + words
        try:
            while self._unsaid:
                self._unsaid = self._unsaid[os.write(self.stdin, self._unsaid) :]
        except BlockingIOError:
            self._poller.register(self.stdin, select.POLLOUT)
            return
        except OSError:  # it reads no more: how it ends is heard elsewhere
            self._unsaid = b""
        if waiting:
            self._poller.unregister(self.stdin)

    def pump(self, descriptor: int) -> bool:
        """Take what was printed and say whether anything was; a full disk holds the agent up."""
        if not self.written():
            time.sleep(FULL_DISK_SECONDS)
            return False
        try:
            data = os.read(descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return False
        number = self.printed[descriptor]
        if not data:
            self._poller.unregister(descriptor)
            del self.printed[descriptor]
            return False
        self._keep(number, self.stream.take(data) if number == 0 else data)
        return True

    def drain(self) -> None:
        """Take all that was printed, by an agent that stands still or has ended."""
        for descriptor in tuple(self.printed):
            while self.pump(descriptor):
                continue

    def end(self) -> None:
        """Take the rest of an agent that has ended."""
        self.drain()
        self._keep(0, self.stream.rest())

    def written(self) -> bool:
        """Write what is not on disk yet, and say whether all is."""
        for number, output in enumerate(self._outputs):
            try:
                while self._unwritten[number]:
                    self._unwritten[number] = self._unwritten[number][os.write(output, self._unwritten[number]) :]
            except OSError:
                return False
        return True

    def _keep(self, number: int, data: bytes) -> None:
        self._unwritten[number] += data
        self.written()
