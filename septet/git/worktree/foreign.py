"""Checks of the files in a worktree's `.git` that git would read: only plain files and folders are allowed.

An agent may leave a link, a FIFO, a socket or a device anywhere in `.git`: git would read another user's file, or
wait for a writer that never comes. HEAD, index and config are not checked: the engine reads HEAD and index as data
and never reads config (`septet.git.worktree.view`). The checks cover names, types and the content of `alternates`.
"""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from septet.errors import WorkspaceError
from septet.git.worktree.dot_git import REMEDY, read_file

_FILES: Final = ("packed-refs", "info/exclude")
_TREES: Final = ("refs", "objects")
_FOLDERS: Final = ("info",)
_ALTERNATES: Final = "objects/info/alternates"
_LIMIT_BYTES: Final = 4096
_MOST_ENTRIES: Final = 1_000_000
_MOST_KNOWN: Final = 4_000
_plain_folders: dict[str, tuple[tuple[int, int, int], tuple[str, ...]]] = {}
"""Folders known to hold only plain entries: device, inode, change time, and the folders in them.

An agent cannot set a change time, and no agent works during the check.
"""


def refuse_foreign(git_dir: Path, lender: bytes) -> None:
    """Refuse a `.git` in which a path that git would read is not a plain file or folder of the `.git` itself.

    The check costs one `lstat` for each of a few names and for each folder of refs and of objects; it lists only
    folders that changed since this process last listed them.

    Args:
        git_dir: The worktree's `.git`.
        lender: The only folder of objects that `git_dir` may borrow, in the form of its `alternates`.

    Raises:
        WorkspaceError: The check failed; the message names the path.
    """
    _expect(git_dir, stat.S_ISDIR, "no plain folder")
    for name in _FOLDERS:
        _expect(git_dir / name, stat.S_ISDIR, "no plain folder")
    for name in _FILES:
        _expect(git_dir / name, stat.S_ISREG, "no plain file")
    for name in _TREES:
        _expect(git_dir / name, stat.S_ISDIR, "no plain folder")
        for seen, path in enumerate(_odd_entries(git_dir / name)):
            if path is not None:
                raise WorkspaceError(f"{path} is not a plain file or folder.", remedy=REMEDY)
            if seen > _MOST_ENTRIES:
                raise WorkspaceError(f"{git_dir / name} holds over {_MOST_ENTRIES} entries.", remedy=REMEDY)
    _expect_borrowed(git_dir / _ALTERNATES, lender)


def _expect(path: Path, is_kind: Callable[[int], bool], what: str) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise WorkspaceError(f"{path} cannot be checked: {error.strerror}.", remedy=REMEDY) from error
    if not is_kind(mode):
        raise WorkspaceError(f"{path} is {what}.", remedy=REMEDY)


def _odd_entries(folder: Path) -> Iterator[Path | None]:
    """Yield each entry below a folder that is neither file nor folder, and `None` for each other entry."""
    folders = [os.fspath(folder)]
    while folders:
        path = folders.pop()
        try:
            stamp = _stamp(path)
            known = _plain_folders.get(path)
            if known is not None and known[0] == stamp:
                folders += known[1]
                continue
            inner = []
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        inner.append(entry.path)
                        yield None
                    else:
                        yield None if entry.is_file(follow_symlinks=False) else Path(entry.path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise WorkspaceError(f"{error.filename} cannot be listed: {error.strerror}.", remedy=REMEDY) from error
        if len(_plain_folders) >= _MOST_KNOWN:
            _plain_folders.clear()
        _plain_folders[path] = stamp, tuple(inner)
        folders += inner


def _stamp(path: str) -> tuple[int, int, int]:
    seen = os.lstat(path)
    return seen.st_dev, seen.st_ino, seen.st_ctime_ns


def _expect_borrowed(alternates: Path, lender: bytes) -> None:
    if not os.path.lexists(alternates):
        return
    content = read_file(alternates, len(lender) + _LIMIT_BYTES)
    if content is None or set(content.splitlines()) - {lender, b""}:
        raise WorkspaceError(f"{alternates} names objects outside the worktree.", remedy=REMEDY)
