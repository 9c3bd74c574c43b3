"""Remove a guest's files from a worktree's repositories, if git would run or follow these files.

The repositories are the workspace's own, those of its submodules, and each repository inside the
worktree. Objects, refs, logs and indexes stay.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from posixpath import basename, dirname, join, normpath
from typing import Final

from septet.git.engine.engine import Git
from septet.git.engine.objects import read_objects
from septet.git.snapshots.config_rules import WHOLE_TREE, TreeChanges, inner_config, own_config
from septet.git.snapshots.repository_stamp import find_baseline
from septet.git.vault.facts import FILE, FOLDER
from septet.git.vault.layout import Item, read
from septet.git.vault.survey import GIT_FOLDER, above, parent

_CONFIG: Final = b"config"
_CONFIGS: Final = frozenset({_CONFIG, b"config.worktree"})
_FOREIGN: Final = frozenset({b"commondir", b"info/attributes"})
"""Files of a repository that change what git reads; they stay only in their state before the first agent."""
_FOREIGN_FOLDERS: Final = frozenset({b"hooks", b"remotes", b"branches"})
_PLAIN_FOLDERS: Final = frozenset({b"info", b"modules", *_FOREIGN_FOLDERS})
_WORKTREES: Final = b"worktrees"
_EXCLUDE: Final = b"info/exclude"
_BASELINE: Final = frozenset({b"hooks", b"info"})
"""The folders in `.git` whose files are restored to their state before the first agent."""
_OBEYED: Final = frozenset({GIT_FOLDER, b"attributes", b"commondir", *_CONFIGS, *_PLAIN_FOLDERS, _WORKTREES})
_OBEYED_FOLDERS: Final = frozenset({_WORKTREES, *_FOREIGN_FOLDERS})
ARMED: Final = (b"hooks", b"worktrees", *sorted(_FOREIGN), *sorted(_CONFIGS))
"""The names in `.git` that are renamed if no snapshot can be taken."""
ASIDE: Final = b".left-"
"""What Septet adds to the name of a file that no snapshot contains."""
_PASSED_ON: Final = frozenset({
    b"HEAD", b"config", b"config.worktree", b"description", b"hooks", b"index", b"info", b"modules", b"objects",
    b"packed-refs", b"refs", b"shallow",
})  # fmt: skip
"""The names in `.git` that a lane's next work order gets."""
_SAMPLE: Final = b".sample"
"""The ending of sample hooks, which git does not run."""
_MODULES: Final = b".git/modules/"
_LINK_WORD: Final = b"gitdir:"
_LIMIT_BYTES: Final = 1 << 20


def own_items(
    vault: Git, order_id: str, items: Mapping[bytes, Item], root: Path, *, passes_on: bool = False
) -> dict[bytes, Item]:
    """Return a worktree's content without what a guest left for git to run or follow.

    Hooks, settings and attributes from before the first agent stay. The vault gets the cleaned configurations.

    Args:
        items: The worktree's content, from a snapshot.
        root: The worktree's path, which may occur in settings.
        passes_on: Whether another work order gets the worktree; then the result lacks `.git`'s logs, for example.

    Raises:
        GitError: The vault cannot be read or written.
    """
    snapshot = find_baseline(vault, order_id)
    baseline = read(vault, snapshot.commit) if snapshot is not None else {}
    repositories = {path for path, item in items.items() if item.mode == FOLDER and _is_repository(path, items)}
    want, files = _without_foreign(items, repositories)
    if passes_on:
        want = {path: item for path, item in want.items() if _goes_along(path)}
    if GIT_FOLDER in repositories:
        files[join(GIT_FOLDER, _CONFIG)] = GIT_FOLDER
        _put_back(want, baseline)
    contents_now, contents_then = _small_contents(vault, (items, baseline), files)
    changes = TreeChanges(os.fsencode(root), lambda path: _part(items, path) == _part(baseline, path))
    linked: list[bytes] = []
    for path, owner in files.items():
        content_now = contents_now.get(path, b"")
        if basename(path) == GIT_FOLDER:
            is_obeyed_file = items[path].mode != FILE or content_now.startswith(_LINK_WORD)
            if is_obeyed_file and _target(path, content_now, root) not in repositories:
                want.pop(path, None)
                if _names_worktree(path, content_now, root):
                    linked.append(dirname(path))
            continue
        is_first = owner == GIT_FOLDER and bool(baseline)
        content = (
            own_config(vault, content_now, contents_then.get(path, b""), changes)
            if is_first
            else inner_config(vault, content_now, owner)
        )
        if not content and basename(path) != _CONFIG:
            want.pop(path, None)
        elif content != content_now or path not in items or items[path].mode != FILE:
            sha = vault.run("hash-object", "-w", "--stdin", stdin=content).decode("ascii").strip()
            want[path] = Item(FILE, sha, 0o644, len(content), in_tree=False)
    # Without its link, a linked worktree's files would become part of the work: only the snapshot keeps them.
    return _with_parents({path: item for path, item in want.items() if not _is_below(path, linked)})


def _without_foreign(
    items: Mapping[bytes, Item], repositories: Collection[bytes]
) -> tuple[dict[bytes, Item], dict[bytes, bytes]]:
    """Return the allowed items, and the paths of config and `.git` files to check, each with its repository."""
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
    """Return the items, sorted by path, except items whose folder is missing."""
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
    """Return whether a path in a repository's folder may stay only as it was before the first agent."""
    first, _, rest = name.partition(b"/")
    if first == _WORKTREES or name in _FOREIGN:
        return True
    if name in _PLAIN_FOLDERS:
        return mode != FOLDER
    if first in _FOREIGN_FOLDERS and rest:
        return mode != FOLDER and not (first == b"hooks" and name.endswith(_SAMPLE))
    return name == _EXCLUDE and mode != FILE


def is_obeyed(path: bytes) -> bool:
    """Return whether git would run or follow any file at this path."""
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
    """Restore in `want` the baseline's hooks and `info` files that are missing there, or foreign and changed."""
    for path, item in baseline.items():
        folder, _, name = path.partition(b"/")
        if folder != GIT_FOLDER or name.partition(b"/")[0] not in _BASELINE:
            continue
        if path not in want or (is_foreign(name, item.mode) and want[path] != item):
            want[path] = item


def _part(items: Mapping[bytes, Item], path: bytes) -> dict[bytes, tuple[int, str]]:
    """Return mode and id of each file at or below a path; `WHOLE_TREE` stands for all files outside of `.git`."""
    return {
        each: (item.mode, item.sha)
        for each, item in items.items()
        if item.mode != FOLDER
        and (not each.startswith(b".git/") if path == WHOLE_TREE else each == path or each.startswith(path + b"/"))
    }


def _target(path: bytes, content: bytes, root: Path) -> bytes:
    """Return the submodule's repository that a `.git` file names, as a path in the worktree; empty if none."""
    word, _, target = content.strip().partition(b" ")
    folder = normpath(join(os.fsencode(root), dirname(path), target))
    below = folder.removeprefix(os.fsencode(root) + b"/")
    return below if word == _LINK_WORD and _MODULES in below and below != folder else b""


def _names_worktree(path: bytes, content: bytes, root: Path) -> bool:
    """Return whether a `.git` file makes its folder a linked worktree, like `git worktree add`."""
    word, _, target = content.strip().partition(b" ")
    folder = normpath(join(os.fsencode(root), dirname(path), target))
    return word == _LINK_WORD and b"/.git/worktrees/" in folder and bool(dirname(path))


def _is_below(path: bytes, folders: Iterable[bytes]) -> bool:
    return any(path == folder or path.startswith(folder + b"/") for folder in folders)


def _small_contents(
    vault: Git, sides: Iterable[Mapping[bytes, Item]], paths: Collection[bytes]
) -> list[dict[bytes, bytes]]:
    """Return the contents of the small files at `paths`, by path, for each snapshot in `sides`."""
    found = [{path: side[path] for path in paths if path in side} for side in sides]
    files = [
        {path: item.sha for path, item in side.items() if item.mode == FILE and item.size <= _LIMIT_BYTES}
        for side in found
    ]
    shas = sorted({sha for side in files for sha in side.values()})
    contents = read_objects(vault, shas) if shas else {}
    return [{path: contents[sha] or b"" for path, sha in side.items()} for side in files]
