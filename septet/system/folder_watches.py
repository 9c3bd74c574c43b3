"""Folders that the kernel watches: what was written in since somebody has looked, without a look at each file.

The kernel tells (inotify) what is created, written, changed, renamed or removed in a watched folder. It does not
tell what is written through a mapping of a file that was open before, through a hard link from elsewhere, and, on
a network's file system, by another machine.
"""

import os
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

try:
    from inotify_simple import INotify, flags  # type: ignore[import-untyped]  # it has no types
except (ImportError, AttributeError):  # there is none but on Linux
    INotify = flags = None

_WATCHED: Final = (
    "MODIFY",
    "ATTRIB",
    "CLOSE_WRITE",
    "MOVED_FROM",
    "MOVED_TO",
    "CREATE",
    "DELETE",
    "DELETE_SELF",
    "MOVE_SELF",
    "ONLYDIR",
    "EXCL_UNLINK",
    "ONESHOT",
)
"""One note for each folder is enough: a whole agent's work makes no more of them."""
_MOST_FOLDERS: Final = 4000
"""In one tree; a kernel that gives few watches has some for other programs."""


@dataclass(slots=True, eq=False)
class TreeWatch:
    """The watched folders of one tree; whoever holds it is the only one to call it."""

    watches: "FolderWatches"
    inodes: dict[bytes, int] = field(default_factory=dict)
    """Folder → inode, of those that were added: a folder of another inode is another one."""
    news: set[bytes] = field(default_factory=set)
    """Folders in which somebody has written, as far as the kernel was asked."""
    is_whole: bool = True
    """Whether the kernel can tell of every folder that was added."""
    folders: dict[int, bytes] = field(default_factory=dict)
    """Watch → folder."""

    def add(self, path: bytes, descriptor: int) -> None:
        """Watch a folder from now on; call it before the folder is listed."""
        self.watches.add(self, path, descriptor)

    def take_news(self) -> set[bytes] | None:
        """Return the folders that have to be added and listed again; `None` where the kernel does not know.

        Folders that were moved or removed are among them, by the path that they had.
        """
        return self.watches.take_news(self)

    def close(self) -> None:
        """Let all its folders go."""
        self.watches.let_go(self)


class FolderWatches:
    """The watches of this process, for threads that each have a tree of their own."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._trees: dict[int, TreeWatch] = {}
        self._kernel: Any = None
        self._mask = sum(flags[name] for name in _WATCHED) if flags is not None else 0

    def new_tree(self) -> TreeWatch | None:
        """Return a watch without folders; `None` where the kernel gives none."""
        with self._guard:
            if self._kernel is None and INotify is not None:
                with suppress(OSError):  # a user has so many
                    self._kernel = INotify(nonblocking=True)
            return TreeWatch(self) if self._kernel is not None else None

    def add(self, tree: TreeWatch, path: bytes, descriptor: int) -> None:
        """Watch a folder of a tree, as `TreeWatch.add` does."""
        with self._guard:
            if not tree.is_whole or self._kernel is None:
                return
            if len(tree.inodes) >= _MOST_FOLDERS:
                tree.is_whole = False
                return
            try:
                watch = self._kernel.add_watch(f"/proc/self/fd/{descriptor}", self._mask)
            except OSError:  # a user has so many
                tree.is_whole = False
                return
            other = self._trees.get(watch)
            if other is not None and other is not tree:
                other.is_whole = False
            before = tree.folders.get(watch)
            if before is not None:
                tree.inodes.pop(before, None)
            self._trees[watch] = tree
            tree.folders[watch] = path
            tree.inodes[path] = os.fstat(descriptor).st_ino

    def take_news(self, tree: TreeWatch) -> set[bytes] | None:
        """Return the folders of a tree that have news, as `TreeWatch.take_news` does."""
        with self._guard:
            if self._kernel is None:
                return None
            self._read()
            news, tree.news = tree.news, set()
            return news if tree.is_whole else None

    def let_go(self, tree: TreeWatch) -> None:
        """Stop watching the folders of a tree."""
        with self._guard:
            for watch in tree.folders:
                if self._trees.get(watch) is tree:
                    del self._trees[watch]
                    with suppress(OSError):  # gone with its folder
                        self._kernel.rm_watch(watch)
            tree.folders.clear()
            tree.is_whole = False

    def close(self) -> None:
        """Let all go; nothing is known from then on."""
        with self._guard:
            if self._kernel is not None:
                self._kernel.close()
                self._kernel = None
            self._trees.clear()

    def _read(self) -> None:
        for event in self._kernel.read(timeout=0):
            if event.mask & flags.Q_OVERFLOW:
                for tree in self._trees.values():
                    tree.is_whole = False
            elif event.wd in self._trees:
                self._note(self._trees[event.wd], event.wd, event.mask)

    def _note(self, tree: TreeWatch, watch: int, mask: int) -> None:
        path = tree.folders[watch]
        tree.news.add(path)
        if mask & flags.IGNORED:
            del self._trees[watch], tree.folders[watch]
