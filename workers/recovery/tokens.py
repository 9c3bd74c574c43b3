"""Keep the token of each running activity on disk; the next worker takes over the activity with the token.

The worker's process holds a lock on the token's file. The kernel releases the lock when the process ends in any
way. A file is used for one activity after the other, because making a file takes as long as many writes.
"""

import contextlib
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import structlog
from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from septet.agents.runs.records import RunKey
from septet.system.locks import lock, try_lock

_SUFFIX: Final = ".token"

_log = structlog.get_logger()


class HeldToken(msgspec.Struct, frozen=True):
    """An attempt of an activity, with the server's token."""

    token: bytes
    key: RunKey
    attempt: int
    started_at: float
    """The start of the attempt, in seconds by the server's clock."""


class _File(NamedTuple):
    """A file that this process has locked."""

    path: Path
    descriptor: int


@dataclass(frozen=True, slots=True)
class TokenFiles:
    """The files in which one process keeps the tokens of its running activities."""

    folder: Path
    _free: list[_File] = field(default_factory=list)

    @contextlib.contextmanager
    def hold(self, held_token: HeldToken) -> Iterator[None]:
        """Keep a token in a locked file during the block; if the disk refuses, a takeover waits for time-outs."""
        try:
            file = self._write(msgspec.json.encode(held_token))
        except OSError as error:
            _log.warning("token_not_kept", folder=str(self.folder), error=str(error))
            yield
            return
        try:
            yield
        finally:
            try:
                os.ftruncate(file.descriptor, 0)
            except OSError:  # on a disk that became read-only the token is stale, as after a kill
                _remove(file)
            else:
                self._free.append(file)

    def close(self) -> None:
        """Remove the files that hold no token now."""
        while self._free:
            _remove(self._free.pop())

    def _write(self, content: bytes) -> _File:
        """Write a token into a free or new file, and return the file."""
        file = self._take_free() or self._make()
        try:
            os.pwrite(file.descriptor, content, 0)
        except OSError:
            _remove(file)
            raise
        return file

    def _take_free(self) -> _File | None:
        """Return an empty file that still exists, or `None`: another worker may have removed such files."""
        while self._free:
            file = self._free.pop()
            if os.fstat(file.descriptor).st_nlink:
                return file
            os.close(file.descriptor)
        return None

    def _make(self) -> _File:
        """Make a file, lock it before it gets its final name, and return it."""
        path = self.folder / f"{secrets.token_hex(8)}{_SUFFIX}"
        draft = path.with_suffix(".draft")
        file = _File(path, os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            lock(file.descriptor)
            draft.rename(path)
        except OSError:
            draft.unlink(missing_ok=True)
            os.close(file.descriptor)
            raise
        return file


@dataclass(frozen=True, slots=True)
class Tokens(Interceptor):
    """Keeps the token of each activity on disk while the activity runs."""

    files: TokenFiles

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Return `next`, wrapped so that each activity's token is on disk."""
        return _TokenHolder(next, self.files)


class _TokenHolder(ActivityInboundInterceptor):
    def __init__(self, following: ActivityInboundInterceptor, files: TokenFiles) -> None:
        super().__init__(following)
        self._files = files

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        with self._files.hold(running_attempt()):
            return await self.next.execute_activity(input)


def running_attempt() -> HeldToken:
    """Return the attempt that the calling activity runs, with its token."""
    info = activity.info()
    key = RunKey(info.workflow_id or "", info.workflow_run_id or "", info.activity_id)
    return HeldToken(info.task_token, key, info.attempt, info.started_time.timestamp())


def tokens_in(folder: Path) -> list[Path]:
    """Return the files of all tokens, whether or not a process has locked them."""
    return sorted(folder.glob(f"*{_SUFFIX}"))


@contextlib.contextmanager
def holding_left_token(path: Path) -> Iterator[HeldToken | None]:
    """Lock and yield the token of a dead worker; yield `None` for a locked, missing or unreadable token.

    This removes an unreadable token: another version wrote the file, or a full disk cut the file.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        if not try_lock(file):
            yield None
            return
        if (held := read_token(path)) is None:
            path.unlink(missing_ok=True)
        yield held
    finally:
        os.close(file)


def read_token(path: Path) -> HeldToken | None:
    """Return the token of a file; `None` for a missing or unreadable file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=HeldToken)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def _remove(file: _File) -> None:
    with contextlib.suppress(OSError):
        file.path.unlink(missing_ok=True)
    os.close(file.descriptor)
