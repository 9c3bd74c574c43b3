"""List all names in a worktree with their `lstat` numbers, without reading files or following links.

Each folder is opened from its parent. Therefore a link in place of a folder is an error, and a path may be longer
than the system allows.
"""

import os
import stat
from array import array
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from septet.errors import WorkspaceError
from septet.git.worktree.view import shown_path
from septet.system.durable import close_after

GIT_FOLDER: Final = b".git"
OVER_LIMIT: Final = "ignored, and over the limit"
OVER_FILE_LIMIT: Final = "over the limit for one file"
MAX_DEPTH: Final = 200
"""The depth below which folders are left out, because each level needs an open descriptor."""
BLOCK_BYTES: Final = 4096
"""The least bytes that a file takes on disk, so that a million tiny files exceed a limit."""

OPEN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""The flags to open a folder; a link in its place is an error."""
FIGURES: Final = 5
"""The count of numbers for each name."""
_SIGNED_LIMIT: Final = 1 << 63
_TYPE_MASK: Final = 0o170000


class Figures(NamedTuple):
    """The `lstat` numbers of one name; of a folder only the mode, because its times change with its entries."""

    mode: int
    """Type and permission bits; 0 if `lstat` failed."""
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class Look(NamedTuple):
    """The names in one folder with their `lstat` numbers, as bytes that are decoded only if needed."""

    names: bytes
    """The names in the system's order, separated by NUL."""
    figures: bytes
    """For each name, five signed 64-bit numbers in the order of `Figures`."""

    def entries(self) -> dict[bytes, Figures]:
        """Return the `lstat` numbers by name."""
        if not self.names:
            return {}
        numbers = iter(array("q", self.figures))
        rows = zip(*[numbers] * FIGURES, strict=True)
        return {name: Figures(*row) for name, row in zip(self.names.split(b"\0"), rows, strict=True)}


def pack_look(entries: Mapping[bytes, Figures]) -> Look:
    """Return the names in a folder and their `lstat` numbers, packed as bytes."""
    return Look(b"\0".join(entries), array("q", [number for row in entries.values() for number in row]).tobytes())


def pipes_in(look: Look) -> list[bytes]:
    """Return the names of the named pipes in a folder."""
    if not any(map(stat.S_ISFIFO, set(array("q", look.figures)[::FIGURES]))):
        return []
    return [name for name, row in look.entries().items() if stat.S_ISFIFO(row.mode)]


@dataclass(slots=True)
class Survey:
    """All names in a worktree with their `lstat` numbers."""

    looks: dict[bytes, Look] = field(default_factory=dict)
    """Each folder by path, parents first; the root is `b""`."""
    closed: dict[bytes, str] = field(default_factory=dict)
    """The paths that could not be read, each with the reason."""


def join(folder: bytes, name: bytes) -> bytes:
    """Return the path of `name` in `folder`."""
    return folder + b"/" + name if folder else name


def parent(path: bytes) -> bytes:
    """Return the path of the folder of `path`."""
    return path.rpartition(b"/")[0]


def above(path: bytes) -> list[bytes]:
    """Return the paths of the folders above `path`, the nearest first, without the root."""
    folders = []
    while path := parent(path):
        folders.append(path)
    return folders


def look_at(root: int, heavy: Collection[bytes] = (), limit_bytes: int = 0) -> Survey:
    """Return all names below the folder with descriptor `root`.

    The last snapshot left out the folders `heavy` as too large; those still above `limit_bytes` stay out.
    """
    survey = Survey()
    _Walk(survey, heavy, limit_bytes).enter(root, b"", 0)
    return survey


def look_again(root: int, earlier: Survey, name: str) -> Survey:
    """Return a copy of an earlier survey with the root's folder `name` read again."""
    folder = os.fsencode(name)

    def is_elsewhere(path: bytes) -> bool:
        return path != folder and not path.startswith(folder + b"/")

    survey = Survey(
        {path: look for path, look in earlier.looks.items() if is_elsewhere(path)},
        {path: why for path, why in earlier.closed.items() if is_elsewhere(path)},
    )
    _Walk(survey, (), 0).go_down(root, b"", name, 0)
    return survey


def open_below(root: int, path: bytes) -> int:
    """Open the folder `path` below `root` without following links, and return its descriptor.

    Raises:
        OSError: A part of the path is missing or is not a folder.
    """
    folder = os.dup(root)
    for name in path.split(b"/") if path else ():
        try:
            below = os.open(name, OPEN_FOLDER, dir_fd=folder)
        finally:
            os.close(folder)
        folder = below
    return folder


def disk_usage(entries: Mapping[bytes, Figures]) -> int:
    """Return how many bytes the files in one folder take on disk."""
    return sum(blocks(row.size) for row in entries.values() if not stat.S_ISDIR(row.mode))


def blocks(size: int) -> int:
    """Return how many bytes a file of `size` bytes takes on disk."""
    return -(-max(size, 1) // BLOCK_BYTES) * BLOCK_BYTES


def unreadable(error: OSError) -> str:
    """Return why a path could not be read, as a text for people."""
    return f"not readable: {error.strerror}"


@dataclass(frozen=True, slots=True)
class _Walk:
    """Adds all folders below a root to a survey."""

    survey: Survey
    heavy: Collection[bytes]
    limit_bytes: int

    def enter(self, folder: int, path: bytes, depth: int) -> None:
        """Add the folder with descriptor `folder`, and everything below it, to the survey."""
        names, numbers, folders = _list(folder, path, self.survey)
        self.survey.looks[path] = Look(os.fsencode("\0".join(names)), _pack(numbers))
        for name in folders:
            self.go_down(folder, path, name, depth)

    def go_down(self, folder: int, path: bytes, name: str, depth: int) -> None:
        """Add the folder `name` in `folder`, and everything below it, to the survey."""
        below = join(path, os.fsencode(name))
        try:
            child = os.open(name, OPEN_FOLDER, dir_fd=folder)
        except OSError as error:
            self.survey.closed[below] = unreadable(error)
            return
        try:
            if depth >= MAX_DEPTH:
                self.survey.closed[below] = f"more than {MAX_DEPTH} folders deep"
            elif below in self.heavy and _usage(child, self.limit_bytes) > self.limit_bytes:
                self.survey.closed[below] = OVER_LIMIT
            else:
                self.enter(child, below, depth + 1)
        finally:
            os.close(child)


def _list(folder: int, path: bytes, survey: Survey) -> tuple[list[str], list[int], list[str]]:
    """Return a folder's names, five `lstat` numbers for each, and the names that are folders.

    The lists are flat, because this loop takes most of a snapshot's time.
    """
    names: list[str] = []
    numbers: list[int] = []
    folders: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            names.append(name)
            try:
                facts = entry.stat(follow_symlinks=False)
            except OSError as error:
                survey.closed[join(path, os.fsencode(name))] = unreadable(error)
                numbers += (0, 0, 0, 0, 0)
                continue
            mode = facts.st_mode
            if mode & _TYPE_MASK == stat.S_IFDIR:
                folders.append(name)
                numbers += (mode, 0, 0, 0, 0)
            else:
                numbers += (mode, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)
    return names, numbers, folders


def _pack(numbers: list[int]) -> bytes:
    """Pack the numbers as signed 64-bit integers; an inode number that is too large wraps to a negative number."""
    try:
        return array("q", numbers).tobytes()
    except OverflowError:
        wrapped = [number if number < _SIGNED_LIMIT else number - 2 * _SIGNED_LIMIT for number in numbers]
        return array("q", wrapped).tobytes()


def _usage(folder: int, limit_bytes: int, depth: int = 0) -> int:
    """Return how many bytes the files below a folder take on disk; the count ends above the limit."""
    names, numbers, folders = _list(folder, b"", Survey())
    used_bytes = disk_usage(Look(os.fsencode("\0".join(names)), _pack(numbers)).entries())
    for name in folders:
        if used_bytes > limit_bytes or depth == MAX_DEPTH:
            break
        with suppress(OSError), close_after(os.open(name, OPEN_FOLDER, dir_fd=folder)) as child:
            used_bytes += _usage(child, limit_bytes - used_bytes, depth + 1)
    return used_bytes


_OPENED: Final = frozenset({
    b".gitignore", b".gitattributes", b".gitmodules", b"HEAD", b"commondir", b"config", b"packed-refs",
})  # fmt: skip
"""The names that git may open in any folder, because a `.git` file or link may lead to any folder."""
_OPENED_FOLDERS: Final = frozenset({GIT_FOLDER, b"refs"})
_MODULES: Final = b".git/modules"
_LONGEST_PATH_BYTES: Final = 4096


def refuse_pipes(worktree: Path, survey: Survey | None = None) -> None:
    """Refuse a worktree in which git would wait at a named pipe; without a current `survey`, list the worktree.

    Raises:
        WorkspaceError: git would wait at a named pipe; the message has its path.
    """
    for path in _find_pipes(os.fsencode(worktree)) if survey is None or survey.closed else _pipes_in(survey):
        folder, _, name = path.rpartition(b"/")
        if name in _OPENED or not _OPENED_FOLDERS.isdisjoint(folder.split(b"/")):
            raise WorkspaceError(
                f"{worktree / shown_path(path)} is a pipe, and git would wait for somebody to write into it.",
                remedy="Remove it, then run `septet retry ID`.",
            )


def _pipes_in(survey: Survey) -> Iterator[bytes]:
    """Yield the paths of named pipes in a survey, except those in the worktree's own `.git`."""
    for folder, look in survey.looks.items():
        if folder.partition(b"/")[0] != GIT_FOLDER or (folder + b"/").startswith(_MODULES + b"/"):
            yield from (join(folder, name) for name in pipes_in(look))


def _find_pipes(worktree: bytes) -> Iterator[bytes]:
    """Yield the relative paths of named pipes below a folder; skip folders that cannot be listed."""
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
        with close_after(os.open(worktree, OPEN_FOLDER)) as root:
            opened = open_below(root, folder)
        with close_after(opened), os.scandir(opened) as entries:
            yield entries
