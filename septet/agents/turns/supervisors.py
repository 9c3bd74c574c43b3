"""The supervisors that a worker starts, one for each agent."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from septet.agents.supervisor import PROGRAM
from septet.agents.turns.runner_connection import connect

_SEPARATOR: Final = b"\0"
_BIRTH: Final = b"+"


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
    confined: bool = False
    """The program is bubblewrap, and the agent is inside."""

    def packed(self) -> bytes:
        """Return the order as the supervisor reads it."""
        numbers = (self.wall_seconds, self.idle_seconds, self.grace_seconds, self.orphan_seconds)
        fields = (
            str(self.folder),
            str(self.directory),
            *map(str, numbers),
            str(int(self.confined)),
            str(len(self.argv)),
            *self.argv,
            *(f"{name}={value}" for name, value in self.env.items()),
        )
        payload = _SEPARATOR.join(os.fsencode(part) for part in fields)
        return b"%d\n%s" % (len(payload), payload)


class Supervisors:
    """Starts supervisors, all of them forked by one small process: a Python of its own for each would cost 20 ms.

    Supervisors live on when this process ends; the one that forks them ends with it. A runner forks them in its
    place where there is one; its end is theirs.
    """

    def __init__(
        self, *, python: str = sys.executable, env: Mapping[str, str] | None = None, runner: Path | None = None
    ) -> None:
        """Use this Python, or this folder's runner; `env` is the supervisors' own, which agents do not see."""
        self._runner = runner
        self._python = python
        self._env = dict(env or {})
        self._guard = threading.Lock()
        self._nursery: socket.socket | None = None

    def prepare(self) -> None:
        """Start the process that forks supervisors. A machine that refuses is asked again in need."""
        if self._runner is not None:
            return
        with self._guard, suppress(OSError):
            self._nursery = self._nursery or self._new_nursery()

    def check(self) -> None:
        """See that agents can be started, before anything is written for one.

        Raises:
            AgentCrashedError: There is no runner where there should be one.
        """
        if self._runner is not None:
            connect(self._runner).close()

    def start(self, order: Order, locks: Sequence[int]) -> socket.socket:
        """Hand the order to a new supervisor and return the socket by which the caller is attached to it.

        Args:
            order: What to run.
            locks: Descriptors of the writer's lock and the run's; the caller closes its own after this.

        Raises:
            OSError: No supervisor could be started.
            AgentCrashedError: There is no runner where there should be one.
        """
        attached = self._new_supervisor()
        try:
            packed = order.packed()
            sent = socket.send_fds(attached, [packed], list(locks))
            attached.sendall(packed[sent:])
        except ConnectionError:  # it ended before it took its order, as the end of the socket will say
            return attached
        except OSError:
            attached.close()
            raise
        return attached

    def close(self) -> None:
        """Let the process go that forks supervisors; the supervisors stay."""
        with self._guard:
            if self._nursery is not None:
                self._nursery.close()
                self._nursery = None

    def _new_supervisor(self) -> socket.socket:
        """Return a socket at whose other end a supervisor waits."""
        if self._runner is not None:
            return connect(self._runner)
        attached, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with theirs:
                self._bear(theirs)
        except OSError:
            attached.close()
            raise
        return attached

    def _bear(self, theirs: socket.socket) -> None:
        """Have a supervisor forked that listens on this socket; a nursery that was killed is replaced."""
        with self._guard:
            if self._nursery is not None:
                with suppress(OSError):
                    socket.send_fds(self._nursery, [_BIRTH], [theirs.fileno()])
                    return
                self._nursery.close()
            self._nursery = self._new_nursery()
            socket.send_fds(self._nursery, [_BIRTH], [theirs.fileno()])

    def _new_nursery(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            process = subprocess.Popen(  # noqa: S603 -- our own program
                [self._python, "-I", "-S", PROGRAM],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=self._env,
                cwd="/",
                start_new_session=True,
            )
        # A thread that does nothing but wait leaves no zombie, whoever goes or is cancelled meanwhile.
        threading.Thread(target=process.wait, name="nursery-reaper", daemon=True).start()
        return ours
