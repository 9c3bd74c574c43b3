"""The connection to the runner of a state directory, for both sides: a folder with a lock and a socket."""

import json
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

from septet.agents.processes.order import ORDER_VERSION
from septet.agents.processes.process_tree import identity
from septet.agents.sandbox.attachment import short_address
from septet.agents.supervisor import PROGRAM, PYTHON_OPTIONS
from septet.errors import AgentCrashedError, AlreadyRunningError
from septet.system import locks

RUNNER_LOCK: Final = "lock"
_SOCKET: Final = "control.sock"
_AGAIN_SECONDS: Final = 2.0
_ANSWER_SECONDS: Final = 15.0
"""The longest wait for a runner: a runner that ends first gives its agents two seconds, and kills their
leftovers."""


def take_lock(folder: Path) -> int:
    """Take the lock of a state directory's one runner, write the holder into it, and return its descriptor.

    Raises:
        AlreadyRunningError: Another runner holds the lock.
    """
    lock = locks.take_lock(folder / RUNNER_LOCK)
    if lock is None:
        raise AlreadyRunningError(
            f"Another runner serves {folder.parent}.", remedy="One runner is enough for any number of workers."
        )
    os.truncate(lock, 0)
    holder = {"runner_pid": os.getpid(), "order_version": ORDER_VERSION, **identity(os.getpid())}
    os.write(lock, json.dumps(holder).encode())
    return lock


def hold_signals() -> None:
    """Block SIGTERM and Ctrl-C until the runner handles them, so that an early signal still ends the runner."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))


def listen(folder: Path) -> socket.socket:
    """Open the runner's socket, for this user only; the caller holds the lock, so an old socket is dead."""
    (folder / _SOCKET).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        with short_address(folder) as address:
            listener.bind(address)
    finally:
        os.umask(mask)
    listener.listen(socket.SOMAXCONN)
    return listener


def become_runner(listener: socket.socket, lock: int) -> NoReturn:
    """Replace this process by the runner's small program."""
    os.dup2(listener.fileno(), 0)
    os.set_inheritable(lock, True)
    os.chdir("/")
    program = [sys.executable, *PYTHON_OPTIONS, PROGRAM, str(lock)]
    os.execve(sys.executable, program, {})


def connect_to_runner(folder: Path) -> socket.socket:
    """Return a connection to the runner; a supervisor waits at its other end for an order.

    Raises:
        AgentCrashedError: No runner answers; a retry may succeed.
    """
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connected.settimeout(_ANSWER_SECONDS)  # a stopped runner fills its backlog and then accepts no connection
    try:
        with short_address(folder) as address:
            connected.connect(address)
    except OSError as error:
        connected.close()
        raise AgentCrashedError(
            f"No runner answers in {folder}: {error.strerror or error}.",
            remedy="Start `septet runner` on this state directory, or start the worker again without "
            "SEPTET_RUNNER.",
            retry_after_seconds=_AGAIN_SECONDS,
        ) from error
    connected.settimeout(None)
    return connected


def await_sweep(folder: Path, within_seconds: float = _ANSWER_SECONDS) -> None:
    """Wait until the runner has killed what dead supervisors left: only the runner may see their processes.

    A missing runner is no error: the processes of its supervisors ended with it.

    Raises:
        AgentCrashedError: The runner lives and does not answer, for example a stopped runner; a retry may succeed.
    """
    try:
        connected = connect_to_runner(folder)
    except AgentCrashedError as error:
        if isinstance(error.__cause__, (BlockingIOError, TimeoutError)):
            raise
        return
    with connected, suppress(OSError):
        connected.settimeout(within_seconds)
        try:
            connected.shutdown(socket.SHUT_WR)
            connected.recv(1)
        except TimeoutError as error:
            raise AgentCrashedError(
                f"The runner in {folder} does not answer.",
                remedy=f"If it was stopped, let it continue: {folder / RUNNER_LOCK} names its process.",
                retry_after_seconds=_AGAIN_SECONDS,
            ) from error
