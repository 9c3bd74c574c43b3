"""One look at every name of a worktree: names and `stat` figures, no byte of content, no link followed.

Folders are opened one below the other by descriptor, so that a folder which becomes a link on the way is an error
and not a way out of the worktree, and a path may be longer than the system's limit.
"""

import os
import stat
from array import array
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple

GIT_FOLDER: Final = b".git"
OVER_LIMIT: Final = "ignored, and over the limit"
OVER_FILE_LIMIT: Final = "over the limit for one file"
MAX_DEPTH: Final = 200
"""Folders below this depth are left out: each level holds a descriptor open."""
BLOCK_BYTES: Final = 4096
"""What the smallest file takes on disk; makes a million tiny files count."""

OPEN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a folder is opened: a link in its place is an error."""
_FIGURES: Final = 5
_SIGNED_LIMIT: Final = 1 << 63
_TYPE_MASK: Final = 0o170000


class Figures(NamedTuple):
    """What `lstat` says about one name. A folder has its mode alone: its times change with its entries."""

    mode: int
    """Type and permission bits; 0 when `lstat` failed."""
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class Look(NamedTuple):
    """What one folder looked like: comparable as it is, unpacked only where something differs."""

    names: bytes
    """The names in the order in which the system gave them, NUL between them."""
    figures: bytes
    """Five signed 64-bit numbers a name, as in `Figures`."""

    def entries(self) -> dict[bytes, Figures]:
        """Return the figures by name."""
        if not self.names:
            return {}
        numbers = iter(array("q", self.figures))
        rows = zip(*[numbers] * _FIGURES, strict=True)
        return {name: Figures(*row) for name, row in zip(self.names.split(b"\0"), rows, strict=True)}


def pack_look(entries: Mapping[bytes, Figures]) -> Look:
    """Return the look that `entries` unpack from."""
    return Look(b"\0".join(entries), array("q", [number for row in entries.values() for number in row]).tobytes())


def pipes_in(look: Look) -> list[bytes]:
    """Return which names of a folder are pipes; one that has none is not unpacked."""
    if not any(map(stat.S_ISFIFO, set(array("q", look.figures)[::_FIGURES]))):
        return []
    return [name for name, row in look.entries().items() if stat.S_ISFIFO(row.mode)]


@dataclass(slots=True)
class Survey:
    """What a worktree looks like now."""

    looks: dict[bytes, Look] = field(default_factory=dict)
    """Folder → look, parents before their children; the root is `b""`."""
    closed: dict[bytes, str] = field(default_factory=dict)
    """What could not be looked at → why."""


def join(folder: bytes, name: bytes) -> bytes:
    """Return the path of `name` in `folder`."""
    return folder + b"/" + name if folder else name


def parent(path: bytes) -> bytes:
    """Return the folder that holds `path`."""
    return path.rpartition(b"/")[0]


def above(path: bytes) -> list[bytes]:
    """Return the folders above `path`, the nearest first, without the root."""
    folders = []
    while path := parent(path):
        folders.append(path)
    return folders


def look_at(root: int, heavy: Collection[bytes] = (), limit_bytes: int = 0) -> Survey:
    """Look at every folder below the descriptor `root`.

    Args:
        root: The worktree's root.
        heavy: Ignored folders that were over the limit the last time: they are looked at no further than it takes
            to see that they still are.
        limit_bytes: That limit.
    """
    survey = Survey()
    _Walk(survey, heavy, limit_bytes).enter(root, b"", 0)
    return survey


def look_again(root: int, earlier: Survey, name: str) -> Survey:
    """Return an earlier survey with the folder `name` of the root looked at anew."""
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
    """Open the folder `path` below `root`, following no link, and return its descriptor.

    Raises:
        OSError: A part of it is gone or is no folder.
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
    """Return the bytes that the files of one folder take, in whole blocks."""
    return sum(blocks(row.size) for row in entries.values() if not stat.S_ISDIR(row.mode))


def blocks(size: int) -> int:
    """Return the bytes that a file of `size` bytes takes on disk."""
    return -(-max(size, 1) // BLOCK_BYTES) * BLOCK_BYTES


def unreadable(error: OSError) -> str:
    """Return why something was left out, for people."""
    return f"not readable: {error.strerror}"


@dataclass(frozen=True, slots=True)
class _Walk:
    """The way down from one root."""

    survey: Survey
    heavy: Collection[bytes]
    limit_bytes: int

    def enter(self, folder: int, path: bytes, depth: int) -> None:
        """Look at the folder with descriptor `folder`, and at all below it."""
        names, numbers, folders = _list(folder, path, self.survey)
        self.survey.looks[path] = Look(os.fsencode("\0".join(names)), _pack(numbers))
        for name in folders:
            self.go_down(folder, path, name, depth)

    def go_down(self, folder: int, path: bytes, name: str, depth: int) -> None:
        """Look at a folder in the folder with descriptor `folder`, and at all below it."""
        below = join(path, os.fsencode(name))
        try:
            child = os.open(name, OPEN_FOLDER, dir_fd=folder)
        except OSError as error:
            self.survey.closed[below] = unreadable(error)
            return
        try:
            self._go_on(child, below, depth + 1)
        finally:
            os.close(child)

    def _go_on(self, folder: int, path: bytes, depth: int) -> None:
        if depth > MAX_DEPTH:
            self.survey.closed[path] = f"more than {MAX_DEPTH} folders deep"
        elif path in self.heavy and _usage(folder, self.limit_bytes) > self.limit_bytes:
            self.survey.closed[path] = OVER_LIMIT
        else:
            self.enter(folder, path, depth)


def _list(folder: int, path: bytes, survey: Survey) -> tuple[list[str], list[int], list[str]]:
    """Return the names of a folder, five numbers for each of them, and which of them are folders.

    Flat lists and no object per entry: this loop is most of what a snapshot costs.
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
    """Return the numbers as bytes; an inode of 64 bits is taken as a signed one."""
    try:
        return array("q", numbers).tobytes()
    except OverflowError:
        wrapped = [number if number < _SIGNED_LIMIT else number - 2 * _SIGNED_LIMIT for number in numbers]
        return array("q", wrapped).tobytes()


def _usage(folder: int, limit_bytes: int, depth: int = 0) -> int:
    """Return the bytes that the files below `folder` take, counting no further than beyond the limit."""
    names, numbers, folders = _list(folder, b"", Survey())
    used_bytes = disk_usage(Look(os.fsencode("\0".join(names)), _pack(numbers)).entries())
    for name in folders:
        if used_bytes > limit_bytes or depth == MAX_DEPTH:
            break
        with suppress(OSError):
            child = os.open(name, OPEN_FOLDER, dir_fd=folder)
            try:
                used_bytes += _usage(child, limit_bytes - used_bytes, depth + 1)
            finally:
                os.close(child)
    return used_bytes
