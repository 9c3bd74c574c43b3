"""A worktree's repositories as the engine says: what a guest has left in a `.git` for git to run or follow goes.

These are the workspace's own repository, those of its submodules, and each one inside the worktree. Objects, refs,
logs and indexes stay as they are.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from posixpath import basename, dirname, join, normpath
from typing import Final

from septet.git.engine.engine import Git
from septet.git.snapshots.config_rules import WHOLE_TREE, TreeChanges, inner_config, own_config
from septet.git.vault.contents import FILE, FOLDER
from septet.git.vault.layout import Item
from septet.git.vault.objects import read_objects
from septet.git.vault.survey import GIT_FOLDER, above, parent

_CONFIG: Final = b"config"
_CONFIGS: Final = frozenset({_CONFIG, b"config.worktree"})
_FOREIGN: Final = frozenset({b"commondir", b"info/attributes"})
"""What git would follow or obey; the baseline's alone counts."""
_FOREIGN_FOLDERS: Final = frozenset({b"hooks", b"remotes", b"branches"})
_PLAIN_FOLDERS: Final = frozenset({b"info", b"modules", *_FOREIGN_FOLDERS})
_WORKTREES: Final = b"worktrees"
_EXCLUDE: Final = b"info/exclude"
_BASELINE: Final = frozenset({b"hooks", b"info"})
"""Folders whose files of the baseline are put back."""
_OBEYED: Final = frozenset({GIT_FOLDER, b"attributes", b"commondir", *_CONFIGS, *_PLAIN_FOLDERS, _WORKTREES})
_OBEYED_FOLDERS: Final = frozenset({_WORKTREES, *_FOREIGN_FOLDERS})
ARMED: Final = (b"hooks", b"worktrees", *sorted(_FOREIGN), *sorted(_CONFIGS))
"""What is renamed in `.git` where nothing can be read first."""
ASIDE: Final = b".left-"
"""In the names of what was renamed, because no snapshot holds it."""
_PASSED_ON: Final = frozenset({
    b"HEAD", b"config", b"config.worktree", b"description", b"hooks", b"index", b"info", b"modules", b"objects",
    b"packed-refs", b"refs", b"shallow",
})  # fmt: skip
"""What one work order hands on to the next one in a lane."""
_SAMPLE: Final = b".sample"
"""git does not run a hook whose name ends so."""
_MODULES: Final = b".git/modules/"
_LINK_WORD: Final = b"gitdir:"
_LIMIT_BYTES: Final = 1 << 20
_PRIVATE: Final = 0o644


def own_items(
    vault: Git,
    items: Mapping[bytes, Item],
    baseline: Mapping[bytes, Item],
    root: Path,
    *,
    passes_on: bool = False,
) -> dict[bytes, Item]:
    """Return what a worktree is to hold; settings that are new are stored in the vault.

    Args:
        vault: Has the content of `items` and `baseline`.
        items: What the worktree holds, as a snapshot has it.
        baseline: What it held before its first agent: hooks, settings and attributes of that survive.
        root: The worktree's path, which settings may name.
        passes_on: The worktree goes to another work order: of its `.git` only commits, refs and index go along.

    Raises:
        GitError: The vault cannot be read or written.
    """
    repositories = {path for path, item in items.items() if item.mode == FOLDER and _is_repository(path, items)}
    want, files = _without_foreign(items, repositories)
    if passes_on:
        want = {path: item for path, item in want.items() if _goes_along(path)}
    if GIT_FOLDER in repositories:
        files[join(GIT_FOLDER, _CONFIG)] = GIT_FOLDER
        _put_back(want, baseline)
    contents = _Contents(vault, items, baseline, files)
    changes = TreeChanges(os.fsencode(root), lambda path: _part(items, path) == _part(baseline, path))
    linked: list[bytes] = []
    for path, owner in files.items():
        content_now = contents.of_now(path)
        if basename(path) == GIT_FOLDER:
            is_obeyed_file = items[path].mode != FILE or content_now.startswith(_LINK_WORD)
            if is_obeyed_file and _target(path, content_now, root) not in repositories:
                want.pop(path, None)
                if _names_worktree(path, content_now, root):
                    linked.append(dirname(path))
            continue
        is_first = owner == GIT_FOLDER and bool(baseline)
        content = (
            own_config(vault, content_now, contents.of_baseline(path), changes)
            if is_first
            else inner_config(vault, content_now, owner)
        )
        if not content and basename(path) != _CONFIG:
            want.pop(path, None)
        elif content != content_now or path not in items or items[path].mode != FILE:
            want[path] = _store(vault, content)
    # Without its link, the files of a linked worktree would become a part of the work: they stay in the snapshot.
    return _with_parents({path: item for path, item in want.items() if not _is_below(path, linked)})


def _without_foreign(
    items: Mapping[bytes, Item], repositories: Collection[bytes]
) -> tuple[dict[bytes, Item], dict[bytes, bytes]]:
    """Return what stays, and the files that are read first, settings and `.git` files, with their repository."""
    want, files = dict(items), {}
    for path, item in items.items():
        if GIT_FOLDER not in path:
            continue
        owner = next((folder for folder in above(path) if folder in repositories), b"")
        name = path[len(owner) + 1 :] if owner else b""
        if name in _CONFIGS or (basename(path) == GIT_FOLDER and item.mode != FOLDER):
            files[path] = owner
        elif owner and is_foreign(name, item.mode):
            want.pop(path)
    return want, files


def _with_parents(want: Mapping[bytes, Item]) -> dict[bytes, Item]:
    """Return, in their order, the files and folders whose folder stays too."""
    folders, kept = {b""}, {}
    for path, item in sorted(want.items()):
        if parent(path) in folders:
            kept[path] = item
            if item.mode == FOLDER:
                folders.add(path)
    return kept


def _goes_along(path: bytes) -> bool:
    folder, _, name = path.partition(b"/")
    return folder != GIT_FOLDER or not name or (name != _EXCLUDE and name.partition(b"/")[0] in _PASSED_ON)


def is_foreign(name: bytes, mode: int) -> bool:
    """Say whether something in a repository's folder goes unless the baseline has it.

    Args:
        name: Its path below that folder.
        mode: git's mode.
    """
    first, _, rest = name.partition(b"/")
    if first == _WORKTREES or name in _FOREIGN:
        return True
    if name in _PLAIN_FOLDERS:
        return mode != FOLDER
    if first in _FOREIGN_FOLDERS and rest:
        return mode != FOLDER and not (first == b"hooks" and name.endswith(_SAMPLE))
    return name == _EXCLUDE and mode != FILE


def is_obeyed(path: bytes) -> bool:
    """Say whether git would run or follow what lies at a path, whatever that is: it is in no snapshot."""
    parts = path.split(b"/")
    if GIT_FOLDER not in parts or ASIDE in parts[-1]:
        return False
    return parts[-1] in _OBEYED or not _OBEYED_FOLDERS.isdisjoint(parts[:-1])


def _is_repository(path: bytes, items: Mapping[bytes, Item]) -> bool:
    if basename(path) == GIT_FOLDER:
        return True
    if _MODULES not in path or join(path, b"HEAD") not in items:
        return False
    return join(path, b"commondir") in items or (join(path, b"objects") in items and join(path, b"refs") in items)


def _put_back(want: dict[bytes, Item], baseline: Mapping[bytes, Item]) -> None:
    """Put back what the baseline has in folders where a guest may have changed or removed it."""
    for path, item in baseline.items():
        folder, _, name = path.partition(b"/")
        if folder != GIT_FOLDER or name.partition(b"/")[0] not in _BASELINE:
            continue
        if path not in want or (is_foreign(name, item.mode) and want[path] != item):
            want[path] = item


def _part(items: Mapping[bytes, Item], path: bytes) -> dict[bytes, tuple[int, str]]:
    """Return the files at a path and below; of the whole tree all but its `.git`."""
    return {
        each: (item.mode, item.sha)
        for each, item in items.items()
        if item.mode != FOLDER
        and (not each.startswith(b".git/") if path == WHOLE_TREE else each == path or each.startswith(path + b"/"))
    }


def _target(path: bytes, content: bytes, root: Path) -> bytes:
    """Return the submodule's repository that a `.git` file names, below the worktree; empty for another one."""
    word, _, target = content.strip().partition(b" ")
    folder = normpath(join(os.fsencode(root), dirname(path), target))
    below = folder.removeprefix(os.fsencode(root) + b"/")
    return below if word == _LINK_WORD and _MODULES in below and below != folder else b""


def _names_worktree(path: bytes, content: bytes, root: Path) -> bool:
    """Say whether a `.git` file in a folder makes a linked worktree of it."""
    word, _, target = content.strip().partition(b" ")
    folder = normpath(join(os.fsencode(root), dirname(path), target))
    return word == _LINK_WORD and b"/.git/worktrees/" in folder and bool(dirname(path))


def _is_below(path: bytes, folders: Iterable[bytes]) -> bool:
    return any(path == folder or path.startswith(folder + b"/") for folder in folders)


def _store(vault: Git, content: bytes) -> Item:
    sha = vault.run("hash-object", "-w", "--stdin", stdin=content).decode("ascii").strip()
    return Item(FILE, sha, _PRIVATE, len(content), in_tree=False)


class _Contents:
    """The small files that are read: as they are now, and as the baseline has them."""

    def __init__(
        self, vault: Git, items: Mapping[bytes, Item], baseline: Mapping[bytes, Item], paths: Iterable[bytes]
    ) -> None:
        self._sides = items, baseline
        found = (side.get(path) for path in paths for side in self._sides)
        shas = {item.sha for item in found if item is not None and item.size <= _LIMIT_BYTES}
        self._contents = read_objects(vault, sorted(shas)) if shas else {}

    def of_now(self, path: bytes) -> bytes:
        return self._read(0, path)

    def of_baseline(self, path: bytes) -> bytes:
        return self._read(1, path)

    def _read(self, side: int, path: bytes) -> bytes:
        item = self._sides[side].get(path)
        return (self._contents.get(item.sha) or b"") if item is not None and item.mode == FILE else b""
