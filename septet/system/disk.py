"""Find out whether a full or read-only disk, or an overloaded machine, caused an error, and name the remedy."""

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from septet.errors import (
    AgentApiError,
    AgentApiUnavailableError,
    AgentError,
    DiskFullError,
    DiskReadOnlyError,
    GitError,
    MachineBusyError,
    MachineFailedError,
    RemoteFullError,
    SeptetError,
    SetupError,
    SnapshotError,
    WorkspaceError,
)

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_SAID_FULL: Final = tuple(os.strerror(number) for number in sorted(_FULL))
_BUSY: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN})
_SAID_BUSY: Final = tuple(os.strerror(number) for number in sorted(_BUSY))
_SAID_READ_ONLY: Final = os.strerror(errno.EROFS)
_NEARLY_NOTHING_BYTES: Final = 64 * 1024


def diagnosed(error: SeptetError | OSError, root: Path) -> SeptetError:
    """Return an error that names the cause of `error`: a full or read-only disk, an overloaded or failing machine.

    Without such a cause, return `error`. The message of `error` is searched too. `root` is on the disk to check.
    """
    if isinstance(error, (MachineFailedError, RemoteFullError)):
        return error
    message = error.message if isinstance(error, SeptetError) else _message_of(error)
    numbers = {cause.errno for cause in _causes(error)}
    if numbers & _FULL or _seems_full(error, root):
        return DiskFullError(f"{_full(root)} {message}")
    if errno.EROFS in numbers or _seems_read_only(error, root):
        return DiskReadOnlyError(f"The disk of {root} is read-only. {message}")
    is_git = isinstance(error, (GitError, SnapshotError, WorkspaceError))
    is_busy = numbers & _BUSY or (is_git and any(words in str(error) for words in _SAID_BUSY))
    # A retryable error keeps its own message.
    if is_busy and not (isinstance(error, SeptetError) and error.retryable):
        return MachineBusyError(f"The machine gives no more open files or processes: {message}")
    return error if isinstance(error, SeptetError) else MachineFailedError(message)


def full_disk(root: Path) -> str:
    """Return a sentence about the free space if the disk of `root` is full; empty if the disk has room."""
    return _full(root) if _has_no_room(root) else ""


def _full(root: Path) -> str:
    room = "its free space is unknown"
    with suppress(OSError):
        facts = os.statvfs(root)
        room = f"{facts.f_bavail * facts.f_frsize:,} bytes are free"
        if facts.f_files and not facts.f_favail:
            room = "no more files can be made: no inodes are free"
    return f"The disk of {root} is full: {room}."


def _message_of(error: OSError) -> str:
    reason = error.strerror or type(error).__name__
    return f"{error.filename}: {reason}." if error.filename else f"{reason}."


def _seems_full(error: SeptetError | OSError, root: Path) -> bool:
    """Return whether a full disk may be the cause: git reports it, or an agent or set-up failed on a full disk."""
    if isinstance(error, (AgentError, SetupError)):
        is_from_api = isinstance(error, (AgentApiError, AgentApiUnavailableError))
        return not is_from_api and _has_no_room(root)
    return any(words in str(error) for words in _SAID_FULL)


def _seems_read_only(error: SeptetError | OSError, root: Path) -> bool:
    """Return whether a read-only disk may be the cause: git reports it, or an agent failed on such a disk."""
    if not isinstance(error, AgentError):
        return _SAID_READ_ONLY in str(error)
    with suppress(OSError):
        return bool(os.statvfs(root).f_flag & os.ST_RDONLY)
    return False


def _causes(error: BaseException | None) -> Iterator[OSError]:
    """Yield each `OSError` among an error and its causes; the causes may form a cycle."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError):
            yield error
        error = error.__cause__


def _has_no_room(root: Path) -> bool:
    try:
        facts = os.statvfs(root)
    except OSError:
        return False
    no_inodes = facts.f_files > 0 and facts.f_favail == 0
    return no_inodes or facts.f_bavail * facts.f_frsize < _NEARLY_NOTHING_BYTES
