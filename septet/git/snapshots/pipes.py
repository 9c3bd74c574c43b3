"""Refuse named pipes where git would open them in a worktree and wait forever.

`septet.git.worktree.dot_git` checks most of the worktree's own `.git`.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from septet.errors import WorkspaceError
from septet.git.vault.survey import GIT_FOLDER, OPEN_FOLDER, Survey, join, open_below, pipes_in
from septet.git.worktree.changes import shown_path
from septet.system.durable import close_after

_OPENED: Final = frozenset({
    b".gitignore", b".gitattributes", b".gitmodules", b"HEAD", b"commondir", b"config", b"packed-refs",
})  # fmt: skip
"""The names that git may open in any folder, because a `.git` file or link may lead to any folder."""
_OPENED_FOLDERS: Final = frozenset({GIT_FOLDER, b"refs"})
_MODULES: Final = b".git/modules"
_LONGEST_PATH_BYTES: Final = 4096


def refuse_pipes(worktree: Path, survey: Survey | None = None) -> None:
    """Refuse a worktree in which git would wait at a pipe; a current `survey` saves a listing of the worktree.

    Raises:
        WorkspaceError: git would wait at a pipe; the message names the pipe.
    """
    is_whole = survey is not None and not survey.closed
    pipes = _pipes_in(survey) if survey is not None and is_whole else _find_pipes(os.fsencode(worktree))
    if path := next(filter(_is_opened, pipes), None):
        raise WorkspaceError(
            f"{worktree / shown_path(path)} is a pipe, and git would wait for somebody to write into it.",
            remedy="Remove it, then run `septet retry ID`.",
        )


def _is_opened(path: bytes) -> bool:
    folder, _, name = path.rpartition(b"/")
    return name in _OPENED or not _OPENED_FOLDERS.isdisjoint(folder.split(b"/"))


def _pipes_in(survey: Survey) -> Iterator[bytes]:
    """Yield the paths of pipes in a survey, except those in the worktree's own `.git`."""
    for folder, look in survey.looks.items():
        if folder.partition(b"/")[0] != GIT_FOLDER or (folder + b"/").startswith(_MODULES + b"/"):
            yield from (join(folder, name) for name in pipes_in(look))


def _find_pipes(worktree: bytes) -> Iterator[bytes]:
    """Yield the relative paths of pipes below a folder; skip folders that cannot be listed."""
    folders = [b""]
    while folders:
        folder = folders.pop()
        with suppress(OSError), _listing(worktree, folder) as entries:
            for entry in entries:
                path = join(folder, os.fsencode(entry.name))
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path if path != GIT_FOLDER else _MODULES)
                elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                    continue
                elif stat.S_ISFIFO(entry.stat(follow_symlinks=False).st_mode):
                    yield path


@contextmanager
def _listing(worktree: bytes, folder: bytes) -> Iterator[Iterator[os.DirEntry[Any]]]:
    """Yield the entries of a folder, even if its path is longer than the system allows."""
    path = join(worktree, folder) if folder else worktree
    if len(path) < _LONGEST_PATH_BYTES:
        with os.scandir(path) as entries:
            yield entries
    else:
        with (
            close_after(os.open(worktree, OPEN_FOLDER)) as root,
            close_after(open_below(root, folder)) as opened,
            os.scandir(opened) as entries,
        ):
            yield entries
