"""The supervisors that a worker starts, one for each agent."""

import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from septet.agents.supervisor import PROGRAM, PYTHON_OPTIONS
from septet.agents.supervisor.order import ORDER_VERSION, Order, send_order
from septet.agents.turns.runner_connection import connect_to_runner, read_order_version

_FORK_REQUEST: Final = b"+"


@dataclass(frozen=True, slots=True)
class SupervisorConnection:
    """A connection at whose other end a supervisor waits for an order, and follows whoever sent it."""

    socket: socket.socket
    order_version: int = ORDER_VERSION
    """The one that this supervisor reads."""

    def send(self, order: Order, locks: Sequence[int]) -> None:
        """Send an order; one whose supervisor has ended is not carried out, as the end of the socket will say.

        Args:
            order: What to run.
            locks: Descriptors of the writer's lock and the run's; the caller closes its own after this.

        Raises:
            OSError: The machine refused.
        """
        send_order(self.socket, order, locks, self.order_version)

    def close(self) -> None:
        """Let a supervisor go that got no order."""
        self.socket.close()


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
        self._fork_server: socket.socket | None = None

    def prepare(self) -> None:
        """Start the fork server. A machine that refuses is asked again in need."""
        if self._runner is not None:
            return
        with self._guard, suppress(OSError):
            self._fork_server = self._fork_server or self._start_fork_server()

    def check(self) -> None:
        """See that agents can be started, before anything is written for one.

        Raises:
            AgentCrashedError: There is no runner where there should be one.
        """
        if self._runner is not None:
            connect_to_runner(self._runner).close()

    def connect(self) -> SupervisorConnection:
        """Return a connection to a new supervisor, which waits for an order.

        Raises:
            OSError: No supervisor could be started.
            AgentCrashedError: There is no runner where there should be one.
        """
        if self._runner is not None:
            connected = connect_to_runner(self._runner)
            return SupervisorConnection(connected, read_order_version(self._runner))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with theirs:
                self._fork_supervisor(theirs)
        except OSError:
            ours.close()
            raise
        return SupervisorConnection(ours)

    def close(self) -> None:
        """Let the fork server go; the supervisors stay."""
        with self._guard:
            if self._fork_server is not None:
                self._fork_server.close()
                self._fork_server = None

    def _fork_supervisor(self, theirs: socket.socket) -> None:
        """Have a supervisor forked that listens on this socket; a fork server that was killed is replaced."""
        with self._guard:
            if self._fork_server is not None:
                with suppress(OSError):
                    socket.send_fds(self._fork_server, [_FORK_REQUEST], [theirs.fileno()])
                    return
                self._fork_server.close()
            self._fork_server = self._start_fork_server()
            socket.send_fds(self._fork_server, [_FORK_REQUEST], [theirs.fileno()])

    def _start_fork_server(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            process = subprocess.Popen(  # noqa: S603 -- our own program
                [self._python, *PYTHON_OPTIONS, PROGRAM],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=self._env,
                cwd="/",
                start_new_session=True,
            )
        # A thread that does nothing but wait leaves no zombie, whoever goes or is cancelled meanwhile.
        threading.Thread(target=process.wait, name="fork-server-reaper", daemon=True).start()
        return ours
