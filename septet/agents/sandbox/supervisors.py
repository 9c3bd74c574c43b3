"""Start supervisors for a worker, one for each agent, and kill what a killed supervisor left."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from septet.agents.processes.confined import FIRST_PROCESS, REPORT
from septet.agents.runs.folders import RUN_VARIABLE
from septet.agents.sandbox.connections import connect_to_runner
from septet.agents.supervisor import PROGRAM, PYTHON_OPTIONS

_FORK_REQUEST: Final = b"+"


class Supervisors:
    """Starts supervisors. A small fork server forks them: a new Python for each supervisor would take 20 ms.

    A spare supervisor waits for the next agent. A supervisor that has an agent survives this process; the fork
    server ends with this process. On a host with a runner, the runner forks supervisors, which end with the
    runner.
    """

    def __init__(
        self, *, python: str = sys.executable, env: Mapping[str, str] | None = None, runner: Path | None = None
    ) -> None:
        """Take the Python and the environment of the fork server, or the folder of the runner."""
        self._runner = runner
        self._python = python
        self._env = dict(env or {})
        self._guard = threading.Lock()
        self._fork_server: socket.socket | None = None
        self._spare: socket.socket | None = None
        """The connection to the spare supervisor; `None` if no supervisor waits."""

    def prepare(self) -> None:
        """Start a spare supervisor for the next agent; ignore an error, because `connect` tries again."""
        if self._runner is None and self._spare is None:
            with suppress(OSError):
                self._let_wait(self._fork_connected())

    def check(self) -> None:
        """Raise an error if the host has a runner that does not answer.

        Raises:
            AgentCrashedError: The runner is missing.
        """
        if self._runner is not None:
            connect_to_runner(self._runner).close()

    def connect(self) -> socket.socket:
        """Return a connection to the spare supervisor, or to a new one; the supervisor then waits for an `Order`.

        Raises:
            OSError: No supervisor could be started.
            AgentCrashedError: The runner is missing.
        """
        if self._runner is not None:
            return connect_to_runner(self._runner)
        return self._take_spare() or self._fork_connected()

    def close(self) -> None:
        """End the fork server and the spare supervisor; supervisors that have an agent to run stay."""
        spare = self._take_spare()
        if spare is not None:
            spare.close()
        with self._guard:
            if self._fork_server is not None:
                self._fork_server.close()
                self._fork_server = None

    def _let_wait(self, connection: socket.socket) -> None:
        """Keep the connection to a spare supervisor; close the connection to an earlier spare supervisor."""
        with self._guard:
            superfluous, self._spare = self._spare, connection
        if superfluous is not None:
            superfluous.close()

    def _take_spare(self) -> socket.socket | None:
        """Return the connection to the spare supervisor; `None` if there is none, or if it was killed."""
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
        spare.close()  # a waiting supervisor sends nothing: this was its end
        return None

    def _fork_connected(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with theirs:
                self._fork_supervisor(theirs)
        except OSError:
            ours.close()
            raise
        return ours

    def _fork_supervisor(self, theirs: socket.socket) -> None:
        """Send a new supervisor's socket to the fork server; start a fork server if none lives."""
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
                process = subprocess.Popen(
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
        # A thread that only waits leaves no zombie, even if its caller ends or is cancelled meanwhile.
        threading.Thread(target=process.wait, name="fork-server-reaper", daemon=True).start()
        return ours


_BOUND_SECONDS: Final = 3.0
"""The seconds after SIGKILL until a process that still lives counts as hanging in the kernel."""
_PAUSE_SECONDS: Final = 0.01
_CLOCK_SECONDS: Final = 2.0
"""The seconds by which the start of a process may seem later than the real start."""


def sweep_leftovers(mark: str, folder: Path) -> int:
    """Kill every process of a dead run; return the number of killed processes.

    The run's processes have `mark` in the variable `SEPTET_RUN`. A process without this variable can only be in a
    sandbox, and ends with the sandbox. This function waits for the end of the sandbox.
    """
    killed: set[int] = set()
    bound = time.monotonic() + _BOUND_SECONDS
    while leftovers := [process for process in psutil.process_iter() if _has_mark(process, mark)]:
        for process in leftovers:
            killed.add(process.pid)
            with suppress(psutil.Error):
                process.kill()
        if time.monotonic() > bound:
            break
        time.sleep(_PAUSE_SECONDS)
    while _sandbox_lives(folder / REPORT) and time.monotonic() < bound:
        time.sleep(_PAUSE_SECONDS)
    return len(killed)


def _sandbox_lives(report: Path) -> bool:
    """Return whether the first process of a run's sandbox is still alive."""
    try:
        if bytes(Path("/proc/self/ns/pid").readlink()) not in report.with_name("lock").read_bytes():
            return False  # a runner's sandbox, which the runner has swept
        match = FIRST_PROCESS.search(report.read_bytes())
        first = psutil.Process(int(match[1])) if match is not None else None
        return (
            first is not None
            and first.status() != psutil.STATUS_ZOMBIE
            and first.create_time() < report.stat().st_ctime + _CLOCK_SECONDS
        )
    except (OSError, psutil.Error):
        return False


def _has_mark(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(RUN_VARIABLE) == mark
    except psutil.Error:
        return False
