"""Keep the token of each running activity on disk, so that the next worker can take over the activity.

The worker's process holds a lock on the token's file, which the kernel releases when the process ends. One file
serves many activities in turn, because making a file is slow.
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
from septet.system.durable import lock, try_lock

_SUFFIX: Final = ".token"

_log = structlog.get_logger()


class HeldToken(msgspec.Struct, frozen=True):
    """An attempt of an activity, with the server's token for it."""

    token: bytes
    key: RunKey
    attempt: int
    started_at: float
    """When the attempt started, in seconds by the server's clock."""


class _File(NamedTuple):
    """A file that this process has locked."""

    path: Path
    descriptor: int


@dataclass(frozen=True, slots=True)
class TokenFiles:
    """The files with the tokens of one process's running activities."""

    folder: Path
    _free: list[_File] = field(default_factory=list)

    @contextlib.contextmanager
    def hold(self, held_token: HeldToken) -> Iterator[None]:
        """Keep a token in a locked file while the block runs; if the disk fails, run the block without a file."""
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
        """Delete the files that hold no token."""
        while self._free:
            _remove(self._free.pop())

    def _write(self, content: bytes) -> _File:
        """Write a token to a free or new file, and return the locked file."""
        file = self._take_free() or self._make()
        try:
            os.pwrite(file.descriptor, content, 0)
        except OSError:
            _remove(file)
            raise
        return file

    def _take_free(self) -> _File | None:
        """Return a free file; `None` if there is none, or another worker has deleted it."""
        while self._free:
            file = self._free.pop()
            if os.fstat(file.descriptor).st_nlink:
                return file
            os.close(file.descriptor)
        return None

    def _make(self) -> _File:
        """Make a file that is locked before it gets its final name."""
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
    """Return the calling activity's attempt, with its token."""
    info = activity.info()
    key = RunKey(info.workflow_id or "", info.workflow_run_id or "", info.activity_id)
    return HeldToken(info.task_token, key, info.attempt, info.started_time.timestamp())


def tokens_in(folder: Path) -> list[Path]:
    """Return the files of all tokens, locked or not."""
    return sorted(folder.glob(f"*{_SUFFIX}"))


@contextlib.contextmanager
def holding_left_token(path: Path) -> Iterator[HeldToken | None]:
    """Lock a dead worker's token, and yield it; yield `None` if it is locked, missing or unreadable.

    An unreadable token is deleted: another version wrote it, or a full disk cut it off.
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
    """Return the token in a file; `None` if the file is missing or unreadable."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=HeldToken)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def _remove(file: _File) -> None:
    with contextlib.suppress(OSError):
        file.path.unlink(missing_ok=True)
    os.close(file.descriptor)
