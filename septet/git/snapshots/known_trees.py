"""What a walk over a worktree has seen: only where the kernel has told of writing since is looked at again.

A whole walk is made where the kernel cannot know: the first time, in a tree with hard links, with repositories in
it or with folders that cannot be looked at, and when more was written than it takes note of. `.git` is looked at
each time.
"""

import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from septet.git.snapshots.survey import GIT_FOLDER, Survey, Walk, join, look_at, look_below, open_below
from septet.system.durable import close_after
from septet.system.folder_watches import FolderWatches, TreeWatch

_KEPT: Final = 16


@dataclass(frozen=True, slots=True)
class _KnownTree:
    """A survey, and the watch that was on each of its folders before it was listed."""

    survey: Survey
    watch: TreeWatch


class KnownTrees:
    """The worktrees that this process has walked over last."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._trees: OrderedDict[Path, _KnownTree] = OrderedDict()
        self._watches = FolderWatches()

    def look_at(self, worktree: Path, root: int, heavy: Collection[bytes] = (), limit_bytes: int = 0) -> Survey:
        """Look at every folder below the descriptor `root`, as `survey.look_at` does, and remember it."""
        with self._guard:
            tree = self._trees.pop(worktree, None)
        known = _look_again(tree, root, heavy, limit_bytes) if tree is not None else None
        if known is None:
            if tree is not None:
                tree.watch.close()
            watch = self._watches.new_tree()
            survey = look_at(root, heavy, limit_bytes, watch)
            known = _KnownTree(survey, watch) if watch is not None else None
        else:
            survey = known.survey
        if known is not None:
            self._keep(worktree, known)
        return survey

    def close(self) -> None:
        """Forget all."""
        with self._guard:
            self._trees.clear()
        self._watches.close()

    def _keep(self, worktree: Path, tree: _KnownTree) -> None:
        """Remember a tree of which the kernel can tell what changes, and forget the one that was kept longest."""
        survey = tree.survey
        is_open = not survey.closed and not survey.has_links
        if not is_open or any(path.endswith(b"/" + GIT_FOLDER) for path in survey.looks):
            tree.watch.close()
            return
        with self._guard:
            others = [self._trees.pop(worktree, None)]
            self._trees[worktree] = tree
            if len(self._trees) > _KEPT:
                others.append(self._trees.popitem(last=False)[1])
        for other in others:
            if other is not None:
                other.watch.close()


def _look_again(tree: _KnownTree, root: int, heavy: Collection[bytes], limit_bytes: int) -> _KnownTree | None:
    """Return the tree as it is now; `None` where that takes a whole walk."""
    news = tree.watch.take_news()
    if news is None:
        return None
    survey = Survey(dict(tree.survey.looks))
    walk = Walk(survey, heavy, limit_bytes, tree.watch)
    walked: set[bytes] = set()
    with suppress(OSError):  # somebody writes at this moment
        for path in sorted(news):
            if path in survey.looks and not _is_below(path, walked):
                walked |= _list_again(walk, root, path)
        survey = look_below(survey, root, GIT_FOLDER)
        if not survey.has_links:
            return _KnownTree(survey, tree.watch)
    return None


def _list_again(walk: Walk, root: int, path: bytes) -> set[bytes]:
    """List a folder that has news; folders in it that are others than before are walked over, and returned.

    Raises:
        OSError: It is gone.
    """
    looks = walk.survey.looks
    before = {name for name, row in looks[path].entries().items() if stat.S_ISDIR(row.mode)}
    walked: set[bytes] = set()
    with close_after(open_below(root, path)) as folder:
        now = walk.list(folder, path)
        _forget(walk, {join(path, name) for name in before - {os.fsencode(name) for name in now}})
        for name in now:
            below = join(path, os.fsencode(name))
            if below == GIT_FOLDER or _is_same(walk, folder, name, below):
                continue
            _forget(walk, {below})
            walk.go_down(folder, path, name, path.count(b"/") + 1 if path else 0)
            walked.add(below)
    return walked


def _is_same(walk: Walk, folder: int, name: str, path: bytes) -> bool:
    """Say whether a folder is the one that was watched by this path, and is known still."""
    inode = walk.watch.inodes.get(path) if walk.watch is not None and path in walk.survey.looks else None
    return inode is not None and os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino == inode


def _is_below(path: bytes, folders: Collection[bytes]) -> bool:
    return any(path == folder or path.startswith(folder + b"/") for folder in folders)


def _forget(walk: Walk, folders: Collection[bytes]) -> None:
    """Forget folders that are gone, with their inodes: another folder may be given one of these."""
    for path in [path for path in walk.survey.looks if _is_below(path, folders)] if folders else []:
        del walk.survey.looks[path]
        if walk.watch is not None:
            walk.watch.inodes.pop(path, None)
