"""The connections to supervisors and to the runner.

An attempt's connection to a supervisor reports the agent's end at once, and takes a request to end the agent. A
runner has a folder with a lock and a socket.
"""

import asyncio
import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NoReturn, Self, cast

import msgspec

from septet.agents.outcomes.outcome import ExitRecord
from septet.agents.processes.order import ORDER_VERSION
from septet.agents.processes.process_tree import identity
from septet.agents.runs.folders import Run
from septet.agents.supervisor import PROGRAM, PYTHON_OPTIONS
from septet.errors import AgentCrashedError, AgentError, AlreadyRunningError
from septet.system import durable
from septet.system.durable import close_after

_LONGEST_ADDRESS_BYTES: Final = 100
"""The longest address of a socket that is used; the system's limit is 104 bytes (macOS) or 108."""
_DESCRIPTORS: Final = Path("/proc/self/fd")


class Attachment(asyncio.Protocol):
    """An attempt's connection to a supervisor, open while the attempt follows the agent."""

    def __init__(self) -> None:
        self._end: asyncio.Future[ExitRecord | None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self._received = b""

    @classmethod
    async def to(cls, folder: Path) -> Self | None:
        """Connect to the supervisor of the run in `folder`; return `None` if no supervisor listens."""
        with suppress(OSError), short_address(folder) as address:
            return (await asyncio.get_running_loop().create_unix_connection(cls, address))[1]
        return None

    @classmethod
    async def over(cls, connection: socket.socket) -> Self:
        """Return an attachment that uses a connected socket."""
        connection.settimeout(0)
        _, attachment = await asyncio.get_running_loop().create_unix_connection(cls, sock=connection)
        return attachment

    async def wait_for_end(self, within_seconds: float) -> bool:
        """Wait for the agent's end for at most `within_seconds`; return whether the agent ended."""
        await asyncio.wait((self._end,), timeout=within_seconds)
        return self._end.done()

    @property
    def record(self) -> ExitRecord | None:
        """The record of the agent's end; `None` before the end, or if the supervisor ended without a record."""
        return self._end.result() if self._end.done() else None

    def ask_to_end(self, why: str) -> None:
        """Request the end of the agent; the supervisor records `why`, which is one word."""
        if self._transport is not None:
            self._transport.write(b"end %s\n" % why.encode())

    def close(self) -> None:
        """Close the connection; the agent continues."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for `ask_to_end`."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Read the only line that a supervisor sends: the record of the agent's end."""
        self._received += data
        line, newline, _ = self._received.partition(b"\n")
        if newline and not self._end.done():
            self._end.set_result(msgspec.json.decode(line.removeprefix(b"ended "), type=ExitRecord))

    def connection_lost(self, exc: Exception | None) -> None:
        """End the wait for the agent's end; without a received record, the result is `None`."""
        del exc
        if not self._end.done():
            self._end.set_result(None)


async def end_agent(run: Run, why: str, *, within_seconds: float = 15.0) -> ExitRecord | None:
    """End a run's agent, if alive, with all processes of the agent; return the record of the end.

    The reason `why` is one word, such as `cancelled`. The agent has two seconds of grace.

    Raises:
        AgentError: The agent could not be ended.
    """
    bound = time.monotonic() + within_seconds
    while await asyncio.to_thread(run.lives):
        attachment = await Attachment.to(run.folder)
        if attachment is not None:
            try:
                attachment.ask_to_end(why)
                await attachment.wait_for_end(bound - time.monotonic())
                if attachment.record is not None:
                    return attachment.record
            finally:
                attachment.close()
        if time.monotonic() > bound:
            raise AgentError(
                f"The agent of {run.folder} did not end within {within_seconds:.0f} s.",
                remedy=f"Kill the processes that {run.folder / 'lock'} names.",
            )
        await asyncio.sleep(0.02)
    return await asyncio.to_thread(run.exit)


@contextmanager
def short_address(folder: Path, name: str = "control.sock") -> Iterator[str]:
    """Yield a path to the folder's socket that is short enough for the system; it is valid during the block."""
    address = str(folder / name)
    if len(os.fsencode(address)) <= _LONGEST_ADDRESS_BYTES:
        yield address
    elif _DESCRIPTORS.exists():
        with close_after(os.open(folder, os.O_RDONLY)) as descriptor:
            yield str(_DESCRIPTORS / str(descriptor) / name)
    else:
        with tempfile.TemporaryDirectory(prefix="septet-", dir="/tmp") as short:
            link = Path(short) / "run"
            link.symlink_to(folder)
            yield str(link / name)


RUNNER_LOCK: Final = "lock"
_AGAIN_SECONDS: Final = 2.0
_ANSWER_SECONDS: Final = 15.0
"""The longest wait for a runner: before its end a runner gives its agents two seconds, and kills their
leftovers."""


def take_lock(folder: Path) -> int:
    """Take the lock of a state directory's runner, for this process, and return the descriptor.

    Raises:
        AlreadyRunningError: Another runner holds the lock.
    """
    lock = durable.take_lock(folder / RUNNER_LOCK)
    if lock is None:
        raise AlreadyRunningError(
            f"Another runner serves {folder.parent}.", remedy="One runner is enough for any number of workers."
        )
    os.truncate(lock, 0)
    holder = {"runner_pid": os.getpid(), "order_version": ORDER_VERSION, **identity(os.getpid())}
    os.write(lock, json.dumps(holder).encode())
    return lock


def hold_signals() -> None:
    """Delay SIGTERM and Ctrl-C until the runner's program handles them; a delayed signal then ends the runner."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))


def listen(folder: Path) -> socket.socket:
    """Open the runner's socket, for this user only, in place of an earlier socket; the caller holds the lock."""
    (folder / "control.sock").unlink(missing_ok=True)
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
    """Replace this process by the small program of the runner."""
    os.dup2(listener.fileno(), 0)
    os.set_inheritable(lock, True)
    os.chdir("/")
    program = [sys.executable, *PYTHON_OPTIONS, PROGRAM, str(lock)]
    os.execve(sys.executable, program, {})


def connect_to_runner(folder: Path) -> socket.socket:
    """Connect to the runner, which forks a supervisor; return the connection to the supervisor.

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
    """Wait until the runner has killed the leftover processes of dead supervisors.

    A missing runner is no error, because the processes of its supervisors ended with the runner.

    Raises:
        AgentCrashedError: The runner lives but does not answer, for example after SIGSTOP; a retry may succeed.
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
