"""Change or delete a workspace, but only after a verified snapshot of it is on disk.

No other module resets, cleans or deletes a workspace; `forget.py` deletes the other files of closed work orders.
`tests/unit/test_destructive_git.py` checks both rules.
"""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from posixpath import basename
from typing import Final

from septet.errors import SnapshotError
from septet.git.engine.engine import Git
from septet.git.engine.objects import read_blobs
from septet.git.engine.place import Place
from septet.git.snapshots.lay import lay
from septet.git.snapshots.own_repository import ARMED, ASIDE, is_obeyed, own_items
from septet.git.snapshots.removal import remove_folder
from septet.git.snapshots.repository_stamp import gitlinks, is_own, note_own
from septet.git.snapshots.take import take
from septet.git.snapshots.unkept import aside_of, is_in_the_way, moved_out, refuse_unkept, without_heavy
from septet.git.vault.facts import FILE, Snapshot, SnapshotOptions
from septet.git.vault.layout import Item, read, read_left_out
from septet.git.vault.survey import GIT_FOLDER, OPEN_FOLDER, join, open_below, refuse_pipes
from septet.git.vault.vault import vault_at, verify
from septet.git.worktree.view import shown_path
from septet.system.durable import close_after

_CHECKOUT_SECONDS: Final = 600.0
_INDEX: Final = b".git/index"
_Content = Callable[[Mapping[bytes, Item], Mapping[bytes, Item]], Mapping[bytes, Item]]


def return_to(
    place: Place,
    snapshot: Snapshot,
    options: SnapshotOptions,
    *,
    adding: Mapping[bytes, Item] | None = None,
    passes_on: bool = False,
) -> Snapshot | None:
    """Restore a snapshot in the workspace, and return the rescue of the earlier state.

    `None` if the earlier state equals the base commit, `options.equal_to` or `snapshot`. Files that the rescue had
    to leave out stay in place, and an ignored folder over the limit stays as a whole.

    Args:
        adding: More files from the vault for the workspace, by path; each folder precedes its content.
        passes_on: Whether the snapshot may be another work order's; the settings in its `.git` are then dropped.

    Raises:
        SnapshotError: No snapshot could be taken first, or a file that was left out is in the way: nothing was
            changed. Or the disk failed halfway: the rescue exists, and the call can be repeated.
    """

    def content_of(then: Mapping[bytes, Item], _now: Mapping[bytes, Item]) -> dict[bytes, Item]:
        want = dict(sorted({**then, **(adding or {})}.items()))
        return own_items(vault_at(place), place.order_id, want, place.worktree, passes_on=passes_on)

    return _change(place, snapshot, options, content_of, always=bool(adding) or passes_on)


def return_git_folder(place: Place, snapshot: Snapshot, options: SnapshotOptions) -> Snapshot | None:
    """Restore only `.git` from a snapshot, and return the rescue, or `None` if none was needed."""

    def content_of(then: Mapping[bytes, Item], now: Mapping[bytes, Item]) -> dict[bytes, Item]:
        rest = {path: item for path, item in now.items() if path.split(b"/")[0] != GIT_FOLDER}
        folder = {path: item for path, item in then.items() if path.split(b"/")[0] == GIT_FOLDER}
        return own_items(vault_at(place), place.order_id, dict(sorted({**rest, **folder}.items())), place.worktree)

    return _change(place, snapshot, options, content_of)


def _change(
    place: Place, snapshot: Snapshot, options: SnapshotOptions, content_of: _Content, *, always: bool = False
) -> Snapshot | None:
    """Save the present state, write the result of `content_of` to the workspace, and return the rescue, if any.

    `content_of` takes the content of `snapshot` and the present content. Without `always`, a workspace that equals
    the snapshot is not changed.
    """
    vault = vault_at(place)
    verify(vault, snapshot)
    current, rescue = _secure(place, replace(options, equal_to=options.equal_to or snapshot))
    if current.commit == snapshot.commit and not always:
        own_repository(place, replace(options, equal_to=snapshot))
        return None
    left_out = read_left_out(vault, current.commit)
    have = read(vault, current.commit)
    want = without_heavy(content_of(read(vault, snapshot.commit), have), left_out)
    obeyed = list(filter(is_obeyed, left_out))
    in_the_way = [path for path in left_out if path not in obeyed and is_in_the_way(path, want)]
    refuse_unkept(place, in_the_way, "Move that elsewhere, then try again.")
    with _naming(place, current), close_after(os.open(place.worktree, OPEN_FOLDER)) as root:
        for path in obeyed:
            _rename(root, path)
        lay(root, have, want, partial(read_blobs, vault))
    note_own(place)
    return rescue


def own_repository(place: Place, options: SnapshotOptions) -> tuple[tuple[str, ...], Snapshot | None]:
    """Restore Septet's files in `.git` after a guest; return the changed paths, and the rescue or `None`.

    Call this only while no guest works in the workspace. If only settings changed, a checkpoint saves the
    settings, and there is no rescue. If nothing changed, no process is started.

    Raises:
        SnapshotError: No snapshot could be taken first: nothing was changed. Or the disk failed halfway: the
            snapshot exists, and the call can be repeated.
    """
    if is_own(place):
        return (), None
    vault = vault_at(place)
    current = take(place, "checkpoint", replace(options, step=None)) or options.equal_to
    if current is None:
        raise SnapshotError(f"No snapshot of {place.worktree} was recorded.")
    verify(vault, current)
    have, left_out = read(vault, current.commit), read_left_out(vault, current.commit)
    want = own_items(vault, place.order_id, have, place.worktree)
    unkept = [path for path in left_out if is_obeyed(path)] + _unkept_repositories(place, have)
    changed = [path for path in sorted({*have, *want}) if have.get(path) != want.get(path)]
    rescue = None
    if any(basename(path) != b"config" for path in changed) and current is not options.equal_to:
        rescue = take(place, "rescue", replace(options, equal_to=None))
    with _naming(place, current), close_after(os.open(place.worktree, OPEN_FOLDER)) as root:
        for path in unkept:
            _rename(root, path)
        lay(root, have, want, partial(read_blobs, vault))
    note_own(place)
    return tuple(shown_path(path) for path in (*changed, *unkept)), rescue


def change_tree(place: Place, git: Git, was: str, to: str, options: SnapshotOptions) -> Snapshot | None:
    """Change the worktree from tree `was` to `to`, like a checkout without force; return the rescue, if any.

    Args:
        git: Septet's view, with an index that holds `was`.
        was: The commit that is checked out.
        to: A commit or a tree.

    Raises:
        SnapshotError: No snapshot could be taken first; nothing was changed.
        WorkspaceError: git would wait at a named pipe in the worktree.
        GitError: git refuses, since present files would be overwritten.
    """
    refuse_pipes(place.worktree)
    _, rescue = _secure(place, options)
    git.run("read-tree", "-m", "-u", was, to, timeout_seconds=_CHECKOUT_SECONDS)
    return rescue


def put_index_back(place: Place, snapshot: Snapshot) -> None:
    """Restore the agent's index from a snapshot; call this only if another snapshot has the present index."""
    vault = vault_at(place)
    size = int(vault.text("cat-file", "-s", snapshot.index))
    item = Item(FILE, snapshot.index, 0o644, size, in_tree=False)
    with _naming(place, snapshot), close_after(os.open(place.worktree, OPEN_FOLDER)) as root:
        lay(root, {_INDEX: item._replace(sha="")}, {_INDEX: item}, partial(read_blobs, vault))


def remove_workspace(place: Place, options: SnapshotOptions, *, accept_loss: bool = False) -> Snapshot | None:
    """Delete a workspace, and return its rescue, or `None` if nothing had changed since the base commit.

    Its snapshots stay. A missing workspace is no error. With `accept_loss`, a person allows the loss of files that
    the rescue had to leave out.

    Raises:
        SnapshotError: No snapshot could be taken first, or files were left out: nothing was removed. Or the disk
            failed halfway: the rescue exists, and the call can be repeated.
    """
    if not os.path.lexists(place.worktree):
        _clear(_aside(place))
        return None
    current, rescue = _secure(place, options)
    if not accept_loss:
        remedy = "Save that elsewhere, and have the janitor drop the rest: SEPTET_DROP_IGNORED_FILES=true."
        refuse_unkept(place, read_left_out(vault_at(place), current.commit), remedy)
        if (moved := aside_of(place)) is not None:
            raise SnapshotError(f"{moved} holds what no snapshot does.", remedy=remedy)
    with _naming(place, current):
        _clear(moved_out(place))
        _clear(_aside(place))
        place.worktree.rename(_aside(place))
        _clear(_aside(place))
    return rescue


def _secure(place: Place, options: SnapshotOptions) -> tuple[Snapshot, Snapshot | None]:
    """Return a verified snapshot of the workspace, and the rescue: the same snapshot, or `None`.

    If nothing must be rescued, the snapshot is a checkpoint, or `options.equal_to` if it is still current.
    """
    rescue = take(place, "rescue", options)
    current = rescue or take(place, "checkpoint", options) or options.equal_to
    if current is None:
        raise SnapshotError(f"No snapshot of {place.worktree} was recorded.")
    verify(vault_at(place), current)
    return current, rescue


def disarm_repository(place: Place) -> None:
    """Rename the files in `.git` that git would run or follow; call this only if no snapshot can be taken.

    `own_repository` restores Septet's files later.

    Raises:
        OSError: The disk refused.
    """
    if is_own(place):
        return
    paths = [join(GIT_FOLDER, name) for name in ARMED]
    with close_after(os.open(place.worktree, OPEN_FOLDER)) as root:
        for path in (*paths, *(join(path, GIT_FOLDER) for path in gitlinks(f"{place.worktree}/.git"))):
            with suppress(FileNotFoundError, NotADirectoryError):
                _rename(root, path)


def _unkept_repositories(place: Place, have: Mapping[bytes, Item]) -> list[bytes]:
    """Return repositories that git would read and no snapshot has, because their ignored folders are too large."""
    paths = (join(path, GIT_FOLDER) for path in gitlinks(f"{place.worktree}/.git"))
    return [path for path in paths if path not in have and os.path.lexists(place.worktree / os.fsdecode(path))]


def _rename(root: int, path: bytes) -> None:
    """Rename a file or folder so that git neither runs nor follows it."""
    folder, _, name = path.rpartition(b"/")
    with close_after(open_below(root, folder)) as holder:
        os.rename(name, name + ASIDE + secrets.token_hex(4).encode(), src_dir_fd=holder, dst_dir_fd=holder)


def _aside(place: Place) -> Path:
    """Return the path to which a workspace is moved before it is deleted; no workspace has this name."""
    return place.worktree.with_name(f"{place.worktree.name}~removed")


def _clear(aside: Path) -> None:
    if aside.exists():
        remove_folder(aside)


@contextmanager
def _naming(place: Place, current: Snapshot) -> Iterator[None]:
    """Turn an `OSError` in the block into an error that names the workspace and the remedy."""
    try:
        yield
    except OSError as error:
        message = f"{place.worktree} could not be changed completely: {error}."
        remedy = f"All that was there is in snapshot {current.name}; remove what is in the way, then try again."
        raise SnapshotError(message, remedy=remedy) from error
