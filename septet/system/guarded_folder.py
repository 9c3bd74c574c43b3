"""Read and write in a folder in which untrusted programs write, and follow no links out of the folder."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class GuardedFolder:
    """A folder with untrusted writers: names are relative and without `..`, and no link is followed."""

    root: Path
    """The path of a folder that the untrusted writers cannot move or replace."""
    below: str = ""
    """The path, below `root`, of the folder in which names begin; no link on this path is followed."""

    def read(self, name: str, limit_bytes: int) -> bytes | None:
        """Return the content of a plain file; `None` if the file is missing, too large or hard-linked."""
        path = _check_name(name)
        with (
            suppress(OSError),
            self.open_folder(path.parts[:-1]) as folder,
            os.fdopen(os.open(path.name, _FILE, dir_fd=folder), "rb") as file,
        ):
            status = os.fstat(file.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_size <= limit_bytes:
                content = file.read(limit_bytes + 1)
                return content if len(content) <= limit_bytes else None
        return None

    def changed_at(self, name: str) -> float | None:
        """Return the Unix time of a plain file's last change; `None` if there is no such file."""
        path = _check_name(name)
        with suppress(OSError), self.open_folder(path.parts[:-1]) as folder:
            status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
            return status.st_mtime if stat.S_ISREG(status.st_mode) else None
        return None

    def find(self, pattern: str) -> list[str]:
        """Return the sorted relative paths of plain files that match a pattern; a `*` matches no `/`."""
        return sorted(self._find((), _check_name(pattern).parts))

    def write(self, name: str, content: bytes) -> None:
        """Write a file, completely or not at all; replace a link of this name, but rename a folder to `.aside-*`.

        Raises:
            OSError: The disk refused.
        """
        path = _check_name(name)
        with self.open_folder(path.parts[:-1], makes=True) as folder:
            draft = f".{secrets.token_hex(8)}.draft"
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                if _is_folder(folder, path.name):
                    _put_aside(folder, path.name)
                os.rename(draft, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(draft, dir_fd=folder)
                raise

    def move(self, name: str, target: "GuardedFolder") -> None:
        """Move a plain file to a guarded folder on the same disk, under the same name; skip a hard-linked file.

        Raises:
            OSError: The disk refused.
        """
        path = _check_name(name)
        with self.open_folder(path.parts[:-1]) as source:
            status = os.stat(path.name, dir_fd=source, follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
                return
            with target.open_folder(path.parts[:-1], makes=True) as folder:
                os.rename(path.name, path.name, src_dir_fd=source, dst_dir_fd=folder)

    def contains(self, name: str, words: bytes) -> bool:
        """Return whether a plain file contains the bytes `words`."""
        path, end = _check_name(name), b""
        with (
            suppress(OSError),
            self.open_folder(path.parts[:-1]) as folder,
            os.fdopen(os.open(path.name, _FILE, dir_fd=folder), "rb") as file,
        ):
            while stat.S_ISREG(os.fstat(file.fileno()).st_mode) and (chunk := file.read(1 << 20)):
                if words in end + chunk:
                    return True
                end = chunk[-len(words) :]
        return False

    def remove(self, name: str) -> None:
        """Delete the file `name`; if `name` is a folder, only rename it, to `.aside-*`.

        Raises:
            OSError: The disk refused.
        """
        path = _check_name(name)
        with suppress(FileNotFoundError, NotADirectoryError), self.open_folder(path.parts[:-1]) as folder:
            if _is_folder(folder, path.name):
                _put_aside(folder, path.name)
            else:
                os.unlink(path.name, dir_fd=folder)

    def make_place(self, name: str, *, is_folder: bool) -> None:
        """Make a folder or a file as a mount point; rename anything else of this name to `.aside-*`.

        Raises:
            OSError: The disk refused.
        """
        path = _check_name(name)
        if is_folder:
            with self.open_folder(path.parts, makes=True):
                return
        with self.open_folder(path.parts[:-1], makes=True) as folder:
            with suppress(FileNotFoundError):
                if stat.S_ISREG(os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode):
                    return
                _put_aside(folder, path.name)
            os.close(os.open(path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder))

    def make_closed(self) -> None:
        """Make the folder if it is missing, and give permissions only to this user.

        Raises:
            OSError: The disk refused.
        """
        with self.open_folder((), makes=True) as folder:
            os.fchmod(folder, 0o700)

    def _find(self, at: tuple[str, ...], patterns: tuple[str, ...]) -> Iterator[str]:
        with suppress(OSError), self.open_folder(at) as folder:
            with os.scandir(folder) as entries:
                fitting = [entry for entry in entries if fnmatchcase(entry.name, patterns[0])]
            for entry in fitting:
                if len(patterns) > 1 and entry.is_dir(follow_symlinks=False):
                    yield from self._find((*at, entry.name), patterns[1:])
                elif len(patterns) == 1 and entry.is_file(follow_symlinks=False):
                    yield "/".join((*at, entry.name))

    @contextmanager
    def open_folder(self, parts: tuple[str, ...], *, makes: bool = False) -> Iterator[int]:
        """Yield a descriptor of an inner folder, without following links; if `makes`, make missing folders."""
        folder = os.open(self.root, _FOLDER)
        try:
            for part in (*PurePosixPath(self.below).parts, *parts):
                below = _own_folder(folder, part) if makes else os.open(part, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = below
            yield folder
        finally:
            os.close(folder)


def _own_folder(folder: int, name: str) -> int:
    """Return a descriptor of the folder `name`; make a missing folder, and rename a link or file to `.aside-*`."""
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        pass
    except OSError:  # a link, a file, or a folder that may not be entered
        _put_aside(folder, name)
    os.mkdir(name, 0o700, dir_fd=folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def _put_aside(folder: int, name: str) -> None:
    os.rename(name, f".aside-{secrets.token_hex(8)}", src_dir_fd=folder, dst_dir_fd=folder)


def _is_folder(folder: int, name: str) -> bool:
    with suppress(FileNotFoundError):
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    return False


def _check_name(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or ".." in path.parts:
        raise ValueError(f"{name!r} is not a name in the folder")
    return path
