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
from septet.agents.supervisor.order import HOST_NETWORK_VERSION, ORDER_VERSION, Order, send_order
from septet.agents.turns.runner_connection import connect_to_runner, read_order_version
from septet.errors import AgentCrashedError

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

    One waits for the next agent, so that its fork is no part of what lies between two agents. Those with an order
    live on when this process ends; the one that forks them ends with it. A runner forks them in its place where
    there is one; its end is theirs.
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
        self._spare: socket.socket | None = None
        """The connection to a supervisor that nobody has given an order yet."""

    def prepare(self) -> None:
        """Have a supervisor wait for the next agent. A machine that refuses is asked again in need."""
        if self._runner is None and self._spare is None:
            with suppress(OSError):
                self._let_wait(self._fork_connected())

    def check(self) -> None:
        """See that agents can be started, before anything is written for one.

        Raises:
            AgentCrashedError: There is no runner where there should be one.
        """
        if self._runner is not None:
            connect_to_runner(self._runner).close()

    @property
    def gives_way_out(self) -> bool:
        """Whether a guest can have a network of its own: a runner of before knows no way out of one."""
        return self._runner is None or read_order_version(self._runner) > HOST_NETWORK_VERSION

    @property
    def runner_is_older(self) -> bool:
        """Whether a runner answers that is of an earlier release, and gives guests the machine's network."""
        try:
            self.check()
        except AgentCrashedError:
            return False
        return not self.gives_way_out

    def connect(self) -> SupervisorConnection:
        """Return a connection to a supervisor that waits for an order: a new one, where none is prepared.

        Raises:
            OSError: No supervisor could be started.
            AgentCrashedError: There is no runner where there should be one.
        """
        if self._runner is not None:
            connected = connect_to_runner(self._runner)
            return SupervisorConnection(connected, read_order_version(self._runner))
        return SupervisorConnection(self._take_spare() or self._fork_connected())

    def close(self) -> None:
        """Let the fork server go, and the supervisor that waits; those with an order stay."""
        spare = self._take_spare()
        if spare is not None:
            spare.close()
        with self._guard:
            if self._fork_server is not None:
                self._fork_server.close()
                self._fork_server = None

    def _let_wait(self, connection: socket.socket) -> None:
        """Keep the connection to a supervisor for the next agent; of two the later one."""
        with self._guard:
            superfluous, self._spare = self._spare, connection
        if superfluous is not None:
            superfluous.close()

    def _take_spare(self) -> socket.socket | None:
        """Return the connection to the supervisor that waits; `None` where none does, or it was killed."""
        with self._guard:
            spare, self._spare = self._spare, None
        if spare is None:
            return None
        try:
            spare.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return spare
        except ConnectionError:
            pass
        spare.close()  # it says nothing by itself: this was its end
        return None

    def _fork_connected(self) -> socket.socket:
        """Have a supervisor forked, and return the connection to it."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with theirs:
                self._fork_supervisor(theirs)
        except OSError:
            ours.close()
            raise
        return ours

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
        try:
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
        except OSError:
            ours.close()
            raise
        # A thread that does nothing but wait leaves no zombie, whoever goes or is cancelled meanwhile.
        threading.Thread(target=process.wait, name="fork-server-reaper", daemon=True).start()
        return ours
