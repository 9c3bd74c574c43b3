"""The supervisors that a worker starts, and one that waits, so that the next agent starts at once."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_PROGRAM: Final = Path(__file__).with_name("supervise.py")
_SEPARATOR: Final = b"\0"


@dataclass(frozen=True, slots=True)
class Order:
    """What a supervisor is to run."""

    folder: Path
    """The run's folder, with `prompt.md` in it."""
    directory: Path
    """Where the agent works."""
    argv: tuple[str, ...]
    """The program by its absolute path, and its arguments."""
    env: Mapping[str, str] = field(repr=False)
    """The agent's whole environment."""
    wall_seconds: float
    idle_seconds: float
    grace_seconds: float = 2.0
    """Between the request to end and the kill."""
    orphan_seconds: float = 1800.0
    """Without an attempt that is attached."""

    def packed(self) -> bytes:
        """Return the order as the supervisor reads it."""
        numbers = (self.wall_seconds, self.idle_seconds, self.grace_seconds, self.orphan_seconds, len(self.argv))
        fields = (
            str(self.folder),
            str(self.directory),
            *map(str, numbers),
            *self.argv,
            *(f"{name}={value}" for name, value in self.env.items()),
        )
        payload = _SEPARATOR.join(os.fsencode(part) for part in fields)
        return b"%d\n%s" % (len(payload), payload)


class Supervisors:
    """Starts supervisors. They live on when this process ends; one that still waits for an order ends with it."""

    def __init__(self, *, python: str = sys.executable, env: Mapping[str, str] | None = None) -> None:
        """Use this Python; `env` is the supervisors' own environment, which agents do not see."""
        self._python = python
        self._env = dict(env or {})
        self._guard = threading.Lock()
        self._spare: _Waiting | None = None
        self._closed = False

    def prepare(self) -> None:
        """Start a supervisor that waits, unless there is one. A machine that refuses is asked again in need."""
        with self._guard:
            if self._spare is None and not self._closed:
                try:
                    self._spare = _Waiting(self._python, self._env)
                except OSError:
                    return

    def start(self, order: Order, locks: Sequence[int]) -> socket.socket:
        """Hand the order to a supervisor and return the socket by which the caller is attached to it.

        Args:
            order: What to run.
            locks: Descriptors of the writer's lock and the run's; the caller closes its own after this.

        Raises:
            OSError: No supervisor could be started.
        """
        with self._guard:
            spare, self._spare = self._spare, None
        packed = order.packed()
        attached = spare.take(packed, locks) if spare is not None else None
        if attached is None:
            attached = _Waiting(self._python, self._env).take(packed, locks)
        if attached is None:
            raise ChildProcessError(f"The supervisor {_PROGRAM} ended before it took its order.")
        threading.Thread(target=self.prepare, name="spare-supervisor", daemon=True).start()
        return attached

    def close(self) -> None:
        """Let the waiting supervisor go; those with an agent stay."""
        with self._guard:
            self._closed = True
            spare, self._spare = self._spare, None
        if spare is not None:
            spare.dismiss()


class _Waiting:
    """A supervisor that waits for its order."""

    def __init__(self, python: str, env: Mapping[str, str]) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 -- our own program
                [python, "-I", "-S", str(_PROGRAM)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(env),
                cwd="/",
                start_new_session=True,
            )
        # A thread that does nothing but wait leaves no zombie, whoever goes or is cancelled meanwhile.
        threading.Thread(target=self._process.wait, name="supervisor-reaper", daemon=True).start()

    def take(self, packed: bytes, locks: Sequence[int]) -> socket.socket | None:
        """Hand over the order; `None` when the supervisor is gone."""
        try:
            sent = socket.send_fds(self._socket, [packed], list(locks))
            self._socket.sendall(packed[sent:])
        except OSError:
            self._socket.close()
            return None
        return self._socket

    def dismiss(self) -> None:
        """Let it end without an order."""
        self._socket.close()
