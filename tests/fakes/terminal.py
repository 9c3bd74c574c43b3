"""A person at a terminal: a command on a pty, its output so far, and typed input."""

import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fakes.septet_command import PROGRAMS, WITHIN_SECONDS, Septet

_CODES = re.compile(r"\x1b\][^\x1b\x07]*(\x1b\\|\x07)|\x1b\[[0-9;?]*[A-Za-z]|\r")


@dataclass
class Terminal:
    process: "subprocess.Popen[bytes]"
    descriptor: int
    painted: str = ""
    """All output since the last match, without colours and cursor moves."""

    def until(self, text: str) -> str:
        """Wait until the output has a text after the last match, and return the output up to the text."""
        deadline = time.monotonic() + WITHIN_SECONDS
        while text not in self.painted:
            assert self._read(deadline), f"{text!r} was not painted: {self.painted}"
        before, _, self.painted = self.painted.partition(text)
        return before + text

    def type(self, text: str) -> None:
        os.write(self.descriptor, f"{text}\n".encode())

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def end(self) -> tuple[int, str]:
        deadline = time.monotonic() + WITHIN_SECONDS
        while self._read(deadline):
            pass
        return self.process.wait(WITHIN_SECONDS), self.painted

    def _read(self, deadline: float) -> bool:
        ready = select.select([self.descriptor], [], [], max(deadline - time.monotonic(), 0))[0]
        try:
            chunk = os.read(self.descriptor, 65536) if ready else b""
        except OSError:  # the terminal's other end is closed
            chunk = b""
        self.painted = _CODES.sub("", self.painted + chunk.decode("utf-8", "replace"))
        return bool(chunk)


@contextmanager
def terminal(septet: Septet, *args: str, cwd: Path | None = None, **extra: str) -> Iterator[Terminal]:
    parent, child = pty.openpty()
    env = {name: value for name, value in septet.env.items() if name not in {"NO_COLOR", "COLUMNS"}}
    with subprocess.Popen(
        [PROGRAMS / "septet", *args],
        env={**env, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40", **extra},
        cwd=cwd,
        stdin=child,
        stdout=child,
        stderr=child,
    ) as process:
        os.close(child)
        try:
            yield Terminal(process, parent)
        finally:
            process.kill()
            os.close(parent)
