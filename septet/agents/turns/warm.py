"""Warm processes, from the side of attempts: one that fits takes the next turn, and any other is ended first."""

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

from septet.agents.runs.folders import Runs
from septet.agents.turns.attachment import short_address
from septet.agents.turns.runner_connection import settle
from septet.agents.turns.supervisors import Order, Supervisors
from septet.agents.turns.sweep import sweep_leftovers
from septet.errors import AgentError
from septet.system.locks import lock_is_held, open_lock, try_lock

_LOCK: Final = "warm.lock"
_DOOR: Final = "warm.sock"
REPLACED: Final = "replaced"
"""Why a process is ended that the next turn does not fit."""

_PROTOCOL: Final = "1"
"""Another one where a supervisor of before would not understand an order of now."""
_OWNER_ONLY: Final = 0o600
_LOOK_SECONDS: Final = 0.02
_END_SECONDS: Final = 15.0
"""It takes two seconds of grace at the most where a turn is under way, and a moment else."""


class WarmProcess(msgspec.Struct, frozen=True):
    """What is known of a process that serves a workspace's turns, in the file of the lock that it holds."""

    mark: str
    """The value of `SEPTET_RUN` in it and in all that it starts: that of its first turn, and of all others."""
    folder: str
    """The run of its first turn."""
    session_id: str | None
    fingerprint: str
    """Of how it was started, prompt and session aside."""

    @classmethod
    def living(cls, runs: Runs, order_id: str) -> "WarmProcess | None":
        """Return the process that serves a workspace, if one lives; one that nobody can read fits no turn."""
        path = _lock_of(runs, order_id)
        if not lock_is_held(path):
            return None
        return _read(path) or cls("", "", None, "")

    def fits(self, start: "WarmStart", session_id: str | None) -> bool:
        """Say whether it is what would be started for a turn, in the session that the turn goes on with."""
        return session_id is not None and (self.fingerprint, self.session_id) == (
            start.fingerprint(self.mark),
            session_id,
        )


@dataclass(frozen=True, slots=True)
class WarmStart:
    """How a process is started that is kept for further turns: all but its prompt and its session."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    worktree: Path

    def fingerprint(self, mark: str) -> str:
        """Return a digest; `mark` keeps equal starts of two workspaces apart."""
        env = (f"{name}={value}" for name, value in sorted(self.env.items()))
        parts = (mark, _PROTOCOL, str(self.worktree), *self.argv, "", *env)
        return hashlib.sha256(b"\0".join(map(os.fsencode, parts))).hexdigest()


@dataclass(frozen=True, slots=True)
class TurnProcess:
    """Where a turn is carried out: in a living process, in a new one that is kept, or in one of its own."""

    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    door: socket.socket | None = None
    """A connection to the living process."""
    began_in: str | None = None
    """The run that started that one."""
    start: WarmStart | None = None
    lock: int | None = None
    """That of the new process that is kept."""

    @classmethod
    def for_turn(cls, runs: Runs, order_id: str, start: WarmStart | None, session_id: str | None) -> Self:
        """Find the way for a turn; a warm process that it does not fit is ended. The caller has the writer's lock.

        Args:
            runs: The runs of this host.
            order_id: The workspace.
            start: How its process is started; `None` for one that is not kept.
            session_id: The session that the turn goes on with.

        Raises:
            AgentError: The process that is in the way does not end.
        """
        living = WarmProcess.living(runs, order_id) if start is not None else None
        if start is not None and living is not None and living.fits(start, session_id):
            door = connect(runs, order_id)
            if door is not None:
                return cls(living.mark, door, Path(living.folder).name)
        if start is None:
            end_warm(runs, order_id, REPLACED)
            return cls()
        return cls(start=start, lock=take_place(runs, order_id, REPLACED))

    def go(
        self, supervisors: Supervisors, order: Order, locks: tuple[int, int], session: str | None
    ) -> socket.socket:
        """Hand the order over and return the attempt's attachment; `locks` are the writer's and the run's.

        Raises:
            OSError: No supervisor could be started, or the disk is full.
            AgentCrashedError: There is no runner where there should be one.
        """
        if self.door is not None:
            return hand_over(self.door, order, locks)
        if self.lock is None or self.start is None:
            return supervisors.start(order, locks)
        note(self.lock, WarmProcess(self.mark, str(order.folder), session, self.start.fingerprint(self.mark)))
        return supervisors.start(order, (*locks, self.lock))

    def close(self, *, gone: bool) -> None:
        """Let go of what a supervisor has now; `gone` says whether the order went."""
        if self.lock is not None:
            os.close(self.lock)
        if self.door is not None and not gone:
            self.door.close()


def connect(runs: Runs, order_id: str) -> socket.socket | None:
    """Return a connection to a workspace's warm process, for an order; `None` when none listens."""
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_address(runs.folder_of(order_id), _DOOR) as address:
            connected.connect(address)
    except OSError:
        connected.close()
        return None
    return connected


def hand_over(door: socket.socket, order: Order, locks: tuple[int, int]) -> socket.socket:
    """Give a warm process its next turn, with the writer's lock and the run's; return the attempt's attachment.

    One that has ended meanwhile takes nothing, as the end of the socket will say.
    """
    with suppress(ConnectionError):
        packed = order.packed()
        sent = socket.send_fds(door, [packed], locks)
        door.sendall(packed[sent:])
    return door


def take_place(runs: Runs, order_id: str, why: str) -> int:
    """End a workspace's warm process, sweep what a killed one left, and return the lock of the next one.

    Raises:
        AgentError: It does not end.
    """
    path = _lock_of(runs, order_id)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = open_lock(path)
    try:
        _wait_for(lock, runs, order_id, why)
        left = _read(path)
        if left is not None:
            if runs.runner is not None:
                settle(runs.runner.parent)
            sweep_leftovers(left.mark, Path(left.folder))
        os.ftruncate(lock, 0)
    except BaseException:
        os.close(lock)
        raise
    return lock


def note(lock: int, process: WarmProcess) -> None:
    """Write into its lock what a process is that is about to start."""
    os.pwrite(lock, msgspec.json.encode(process), 0)


def end_warm(runs: Runs, order_id: str, why: str = "closed") -> None:
    """End the process that was left running for a workspace's next turn, with what a killed one left.

    A turn that is under way is ended too. Nothing is done where there is no such process.

    Raises:
        AgentError: It does not end.
    """
    if _lock_of(runs, order_id).exists():
        os.close(take_place(runs, order_id, why))


def warm_orders(runs: Runs) -> list[str]:
    """Return the workspaces that have a warm process here, at work or not."""
    return [order_id for order_id in runs.orders() if lock_is_held(_lock_of(runs, order_id))]


def _wait_for(lock: int, runs: Runs, order_id: str, why: str) -> None:
    """Take the lock from the process that holds it, which is asked to end."""
    bound = time.monotonic() + _END_SECONDS
    while not try_lock(lock):
        if time.monotonic() > bound:
            path = _lock_of(runs, order_id)
            raise AgentError(
                f"The warm process of {order_id} did not end within {_END_SECONDS:.0f} s.",
                remedy=f"Kill the process that holds {path} (`fuser {path}`).",
            )
        _ask_to_end(runs, order_id, why)
        time.sleep(_LOOK_SECONDS)


def _ask_to_end(runs: Runs, order_id: str, why: str) -> None:
    door = connect(runs, order_id)
    if door is not None:
        with door, suppress(OSError):
            door.sendall(b"end %s\n" % why.encode())
            door.shutdown(socket.SHUT_WR)


def _lock_of(runs: Runs, order_id: str) -> Path:
    return runs.folder_of(order_id) / _LOCK


def _read(path: Path) -> WarmProcess | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=WarmProcess)
    except (OSError, msgspec.MsgspecError):
        return None
