"""The warm process of a workspace: a turn uses a process that fits the turn; other processes are ended."""

import hashlib
import os
import socket
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

import msgspec

from septet.agents.processes.order import ORDER_VERSION, Order, send_order
from septet.agents.runs.folders import Run, Runs
from septet.agents.sandbox.connections import await_sweep, short_address
from septet.agents.sandbox.supervisors import Supervisors, sweep_leftovers
from septet.errors import AgentError
from septet.system.durable import lock_is_held, open_lock, read_struct, try_lock

REPLACED: Final = "replaced"
"""The reason to end a process that does not fit the next turn."""

_LOCK: Final = "warm.lock"
_SOCKET: Final = "warm.sock"
_END_SECONDS: Final = 15.0
"""The seconds to wait for a process's end: a turn has two seconds of grace, an idle process ends at once."""


class WarmProcessEndedError(Exception):
    """A warm process ended before it took its next turn."""


class WarmProcess(msgspec.Struct, frozen=True):
    """The record of a workspace's warm process, in the lock file that the process holds."""

    mark: str
    """The value of `SEPTET_RUN` in the process, and in all processes that it starts, in every turn."""
    folder: str
    """The folder of the run of the process's first turn."""
    session_id: str | None
    fingerprint: str
    """The digest of what the process was started with, except prompt and session."""

    @classmethod
    def living(cls, runs: Runs, order_id: str) -> "WarmProcess | None":
        """Return the workspace's warm process if it lives; otherwise `None`."""
        path = _lock_of(runs, order_id)
        if not lock_is_held(path):
            return None
        return read_struct(path, WarmProcess) or cls("", "", None, "")

    def fits(self, start: "WarmStart", session_id: str | None) -> bool:
        """Return whether this process can run a turn that needs `start` and continues `session_id`."""
        if session_id is None or self.session_id != session_id:
            return False
        return self.fingerprint == start.fingerprint(self.mark)


@dataclass(frozen=True, slots=True)
class WarmStart:
    """What starts a process that stays warm: command, environment and worktree, but no prompt and no session."""

    argv: tuple[str, ...] = field(repr=False)
    env: Mapping[str, str] = field(repr=False)
    worktree: Path

    def fingerprint(self, mark: str) -> str:
        """Return a digest of this start, `ORDER_VERSION` and `mark`; see `WarmProcess.mark`."""
        env = (f"{name}={value}" for name, value in sorted(self.env.items()))
        parts = (mark, str(ORDER_VERSION), str(self.worktree), *self.argv, "", *env)
        return hashlib.sha256(b"\0".join(map(os.fsencode, parts))).hexdigest()


def connect_to_warm_process(folder: Path) -> socket.socket | None:
    """Connect to the warm process whose runs are in `folder`; return `None` if no process listens."""
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_address(folder, _SOCKET) as address:
            connected.connect(address)
    except OSError:
        connected.close()
        return None
    return connected


def take_place(runs: Runs, order_id: str, why: str) -> int:
    """End a workspace's warm process and leftover processes; return the lock's descriptor, for the next process.

    Raises:
        AgentError: The process does not end.
    """
    path = _lock_of(runs, order_id)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = open_lock(path)
    try:
        _await_lock(lock, runs, order_id, why)
        previous = read_struct(path, WarmProcess)
        if previous is not None:
            if runs.runner is not None:
                await_sweep(runs.runner.parent)
            sweep_leftovers(previous.mark, Path(previous.folder))
        os.ftruncate(lock, 0)
    except BaseException:
        os.close(lock)
        raise
    return lock


def end_warm(runs: Runs, order_id: str, why: str = "closed") -> None:
    """End a workspace's warm process, if there is one, even during a turn; also kill leftover processes.

    Raises:
        AgentError: The process does not end.
    """
    if _lock_of(runs, order_id).exists():
        os.close(take_place(runs, order_id, why))


def warm_orders(runs: Runs) -> list[str]:
    """Return the ids of the workspaces on this host that have a warm process, busy or idle."""
    return [order_id for order_id in runs.orders() if is_warm(runs, order_id)]


def is_warm(runs: Runs, order_id: str) -> bool:
    """Return whether a workspace has a warm process on this host, busy or idle."""
    return lock_is_held(_lock_of(runs, order_id))


def _await_lock(lock: int, runs: Runs, order_id: str, why: str) -> None:
    """Request the end of the process that holds the lock; take the lock when the process has ended."""
    bound = time.monotonic() + _END_SECONDS
    while not try_lock(lock):
        if time.monotonic() > bound:
            path = _lock_of(runs, order_id)
            raise AgentError(
                f"The warm process of {order_id} did not end within {_END_SECONDS:.0f} s.",
                remedy=f"Kill the process that holds {path} (`fuser {path}`).",
            )
        connected = connect_to_warm_process(runs.folder_of(order_id))
        if connected is not None:
            with connected, suppress(OSError):
                connected.sendall(b"end %s\n" % why.encode())
                connected.shutdown(socket.SHUT_WR)
        time.sleep(0.02)


def _lock_of(runs: Runs, order_id: str) -> Path:
    return runs.folder_of(order_id) / _LOCK


@dataclass(frozen=True, slots=True)
class TurnProcess:
    """The process of a turn: a living warm process, a new warm process, or a process for this turn alone."""

    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    living: WarmProcess | None = None
    start: WarmStart | None = None
    lock: int | None = None
    """The descriptor of the lock of a new process that stays warm."""

    @classmethod
    def for_turn(cls, runs: Runs, order_id: str, start: WarmStart | None, session_id: str | None) -> Self:
        """Choose the process for a turn, and end a warm process that does not fit.

        The caller holds the writer's lock. If `start` is `None`, the process ends with the turn.

        Raises:
            AgentError: The warm process does not end.
        """
        if start is None:
            end_warm(runs, order_id, REPLACED)
            return cls()
        living = WarmProcess.living(runs, order_id)
        if living is not None and living.fits(start, session_id):
            return cls(living.mark, living)
        return cls(start=start, lock=take_place(runs, order_id, REPLACED))

    @property
    def began_in(self) -> str | None:
        """The name of the run that started the living process; `None` if there is no living process."""
        return Path(self.living.folder).name if self.living is not None else None

    def send_order(
        self, supervisors: Supervisors, run: Run, order: Order, locks: tuple[int, int]
    ) -> socket.socket:
        """Send an order to the supervisor of the process; return the connection to the supervisor.

        Write the run's files before this call, because a connected warm supervisor only waits for the order.

        Raises:
            OSError: No supervisor could be started, or the disk is full.
            AgentCrashedError: The runner is missing.
            WarmProcessEndedError: The warm process has ended; nothing was sent.
        """
        connection = supervisors.connect() if self.living is None else connect_to_warm_process(run.folder.parent)
        if connection is None:
            raise WarmProcessEndedError
        session_id = run.record.session_id if run.record is not None else None
        try:
            if self.start is None or self.lock is None:
                send_order(connection, order, locks)
            else:
                fingerprint = self.start.fingerprint(self.mark)
                process = WarmProcess(self.mark, order.folder, session_id, fingerprint)
                os.pwrite(self.lock, msgspec.json.encode(process), 0)
                send_order(connection, order, (*locks, self.lock))
        except OSError:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Close this process's descriptor of the lock; the supervisor has another descriptor."""
        if self.lock is not None:
            os.close(self.lock)
