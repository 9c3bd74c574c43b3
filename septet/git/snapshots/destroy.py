"""The one choke point for whatever can lose work: first a snapshot, on disk and verified, then the destruction.

No other module resets, cleans or removes a workspace; `tests/unit/test_destructive_git.py` holds that.
"""

import math
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from posixpath import basename
from typing import Final

from septet.errors import SnapshotError
from septet.git.engine.engine import Git
from septet.git.engine.packs import PACKING_SECONDS, clear_unfinished_packs, is_older
from septet.git.engine.place import Place, vault_lock
from septet.git.snapshots.lay import lay
from septet.git.snapshots.own_repository import ARMED, ASIDE, is_obeyed, own_items
from septet.git.snapshots.pipes import refuse_pipes
from septet.git.snapshots.removal import remove_folder
from septet.git.snapshots.repository_stamp import find_baseline, gitlinks, is_own, note_own
from septet.git.snapshots.take import take
from septet.git.vault.contents import FILE, FOLDER
from septet.git.vault.facts import Snapshot
from septet.git.vault.layout import Item, read, read_left_out
from septet.git.vault.objects import read_blobs
from septet.git.vault.survey import GIT_FOLDER, OPEN_FOLDER, OVER_LIMIT, above, join, open_below, parent
from septet.git.vault.vault import vault_at, verify
from septet.git.worktree.changes import shown_path
from septet.system.durable import close_after
from septet.system.locks import hold_lock
from septet.system.text import name_some

_SHOWN_PATHS: Final = 5
_CHECKOUT_SECONDS: Final = 600.0
_INDEX: Final = b".git/index"
_INDEX_BITS: Final = 0o644


@dataclass(frozen=True, slots=True)
class RescueOptions:
    """What the rescue that comes first says of itself, and may hold."""

    reason: str
    ignored_limit_bytes: int
    """What all ignored files together may take on disk; the largest beyond it are left out."""
    step: str | None = None


def return_to(  # noqa: PLR0913 -- what is wanted, and what may go, all by name
    place: Place,
    snapshot: Snapshot,
    options: RescueOptions,
    *,
    secured_by: Snapshot | None = None,
    adding: Mapping[bytes, Item] | None = None,
    only: bytes = b"",
    accept_loss: bool = False,
    passes_on: bool = False,
) -> Snapshot | None:
    """Make the workspace as it was at `snapshot`, and return the rescue of what it was until now.

    There is no rescue when nothing had changed since the base commit or since `secured_by`. What the rescue had to
    leave out stays where it is, an ignored folder over the limit as a whole.

    Args:
        place: The workspace.
        snapshot: One of its snapshots.
        options: What the rescue says.
        secured_by: The snapshot that may hold already what is there; `snapshot` itself when absent.
        adding: What the vault has, and is to be there as well, by its path; folders before what is in them.
        only: A folder of the root; all else stays as it is. The whole workspace where none is named.
        accept_loss: A person says that what is left out may go where it is in the way.
        passes_on: The snapshot may be of another work order, whose words in `.git` do not go along.

    Raises:
        SnapshotError: The workspace could not be secured first, or something that was left out is in the way: then
            nothing was changed. Or the disk failed on the way: then the rescue stands, and the call can be
            repeated.
    """
    vault = vault_at(place)
    verify(vault, snapshot)
    current, rescue = _secure(place, options, secured_by or snapshot)
    if current.commit == snapshot.commit and not (adding or passes_on):
        own_repository(place, options, secured_by=snapshot)
        return None
    left_out = read_left_out(vault, current.commit)
    have = read(vault, current.commit)
    want = dict(sorted({**_within(read(vault, snapshot.commit), have, only), **(adding or {})}.items()))
    want = _own(place, want, passes_on=passes_on)
    if not accept_loss:
        want = _without_heavy(want, left_out)
    obeyed = list(filter(is_obeyed, left_out))
    in_the_way = [path for path in left_out if path not in obeyed and _is_in_the_way(path, want)]
    if not accept_loss:
        _refuse(place, in_the_way, "Move that elsewhere, then try again.")
    with _naming(place, current), close_after(os.open(place.worktree, OPEN_FOLDER)) as root:
        for path in obeyed:
            _rename(root, path)
        _move_out(root, in_the_way, _aside(place))
        lay(root, have, want, partial(read_blobs, vault))
    note_own(place)
    return rescue


def own_repository(
    place: Place, options: RescueOptions, *, secured_by: Snapshot | None = None
) -> tuple[tuple[str, ...], Snapshot | None]:
    """Make `.git` what the engine says, after a guest; return what went or was put back, and the rescue of it.

    Settings are no work and cost no rescue, but a snapshot holds them too. Where nothing was touched, no snapshot
    is taken and no process started.

    Args:
        place: The workspace; no guest works in it.
        options: What the rescue says.
        secured_by: The snapshot that may hold already what is there.

    Raises:
        SnapshotError: The workspace could not be secured first; then nothing was changed. Or the disk failed on
            the way: then the snapshot stands, and the call can be repeated.
    """
    if is_own(place):
        return (), None
    vault, limit = vault_at(place), options.ignored_limit_bytes
    current = take(
        place, "checkpoint", options.reason, ignored_limit_bytes=limit, step=None, unless_equal_to=secured_by
    )
    current = current or secured_by
    if current is None:
        raise SnapshotError(f"No snapshot of {place.worktree} was recorded.")
    verify(vault, current)
    have, left_out = read(vault, current.commit), read_left_out(vault, current.commit)
    want = _own(place, have)
    unkept = [path for path in left_out if is_obeyed(path)] + _unkept_repositories(place, have)
    changed = [path for path in sorted({*have, *want}) if have.get(path) != want.get(path)]
    rescue = None
    if any(basename(path) != b"config" for path in changed) and current is not secured_by:
        rescue = take(place, "rescue", options.reason, ignored_limit_bytes=limit, step=options.step)
    with _naming(place, current), close_after(os.open(place.worktree, OPEN_FOLDER)) as root:
        for path in unkept:
            _rename(root, path)
        lay(root, have, want, partial(read_blobs, vault))
    note_own(place)
    return tuple(shown_path(path) for path in (*changed, *unkept)), rescue


def change_tree(  # noqa: PLR0913, PLR0917 -- from what to what, and what was kept
    place: Place, git: Git, was: str, to: str, options: RescueOptions, secured_by: Snapshot
) -> Snapshot | None:
    """Let the worktree go from one tree to another, as a checkout without force does, and return the rescue.

    Args:
        place: The workspace.
        git: The engine's view, with an index that holds `was`.
        was: The commit that is checked out.
        to: A commit or a tree.
        options: What the rescue says.
        secured_by: The snapshot that may hold already what is there.

    Raises:
        SnapshotError: The workspace could not be secured first; then nothing was changed.
        WorkspaceError: git would wait at a pipe.
        GitError: git refuses, for what is there would be overwritten.
    """
    refuse_pipes(place.worktree)
    _, rescue = _secure(place, options, secured_by)
    git.run("read-tree", "-m", "-u", was, to, timeout_seconds=_CHECKOUT_SECONDS)
    return rescue


def put_index_back(place: Place, snapshot: Snapshot) -> None:
    """Put git's index back as it was at a snapshot; the caller has one that holds the other index."""
    vault = vault_at(place)
    item = Item(
        FILE, snapshot.index, _INDEX_BITS, int(vault.text("cat-file", "-s", snapshot.index)), in_tree=False
    )
    with _naming(place, snapshot), close_after(os.open(place.worktree, OPEN_FOLDER)) as root:
        lay(root, {_INDEX: item._replace(sha="")}, {_INDEX: item}, partial(read_blobs, vault))


def aside_of(place: Place) -> Path | None:
    """Return the folder beside a workspace that holds what was moved out of it; `None` where nothing was."""
    folder = _moved_out(place)
    return folder if folder.exists() else None


def set_aside(place: Place, paths: Iterable[bytes]) -> None:
    """Move what no snapshot holds out of a workspace; it stays beside that, out of the reach of guests.

    Raises:
        SnapshotError: The disk failed on the way; the rest is where it was.
    """
    folder = _moved_out(place)
    try:
        number = len(list(folder.iterdir())) if folder.exists() else 0
        for path in paths:
            target = folder / f"{number:04d}" / os.fsdecode(path)
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with (
                suppress(FileNotFoundError, NotADirectoryError),
                close_after(os.open(place.worktree, OPEN_FOLDER)) as root,
                close_after(open_below(root, parent(path))) as holder,
            ):
                name = basename(path)
                facts = os.stat(name, dir_fd=holder, follow_symlinks=False)
                if stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_IRWXU != stat.S_IRWXU:
                    os.chmod(name, stat.S_IRWXU, dir_fd=holder)  # else it could not be moved
                os.rename(name, target, src_dir_fd=holder)
    except OSError as error:
        message = f"{place.worktree} could not be changed completely: {error}."
        raise SnapshotError(message, remedy=f"Make room in {folder.parent}, then run `septet retry`.") from error


def remove_workspace(place: Place, options: RescueOptions, *, accept_loss: bool = False) -> Snapshot | None:
    """Remove a workspace and return its rescue: `None` when nothing had changed since the base commit.

    The snapshots stay. A workspace that is gone already is no error.

    Args:
        place: The workspace.
        options: What the rescue says.
        accept_loss: A person says that what the rescue had to leave out may go.

    Raises:
        SnapshotError: The workspace could not be secured first, or something was left out: then nothing was
            removed. Or the disk failed on the way: then the rescue stands, and the call can be repeated.
    """
    if not os.path.lexists(place.worktree):
        _clear(_aside(place))
        return None
    current, rescue = _secure(place, options)
    if not accept_loss:
        remedy = "Save that elsewhere, and have the janitor drop the rest: SEPTET_DROP_IGNORED_FILES=true."
        _refuse(place, read_left_out(vault_at(place), current.commit), remedy)
        if (moved := aside_of(place)) is not None:
            raise SnapshotError(f"{moved} holds what no snapshot does.", remedy=remedy)
    with _naming(place, current):
        _clear(_moved_out(place))
        _clear(_aside(place))
        place.worktree.rename(_aside(place))
        _clear(_aside(place))
    return rescue


def remove_closed(folder: Path, trash: Path) -> None:
    """Remove a folder of a closed work order or repository that is no worktree: runs, records, a vault, a mirror.

    It leaves its place at once, and what is in it then; a link is not followed. The caller holds its locks.

    Args:
        folder: What nothing needs any more.
        trash: The folder of the same disk in which things lie that are on their way out.

    Raises:
        SnapshotError: It is a link.
        OSError: Something cannot be removed; `clear_trash` goes on with it.
    """
    if folder.is_symlink():
        raise SnapshotError(f"{folder} is a link.", remedy="Find out who put it there; Septet leaves it as it is.")
    trash.mkdir(mode=0o700, exist_ok=True)
    aside = trash / secrets.token_hex(8)
    folder.rename(aside)
    remove_folder(aside)


def clear_trash(trash: Path) -> None:
    """Remove what a janitor that was killed left on its way out.

    Raises:
        OSError: Something cannot be removed.
    """
    for path in sorted(trash.iterdir()) if trash.is_dir() else ():
        if path.is_dir() and not path.is_symlink():
            remove_folder(path)


def forget_snapshots(place: Place, snapshots: Iterable[Snapshot]) -> None:
    """Forget snapshots of a work order whose workspace is gone. The caller says that their time is over.

    Raises:
        GitError: One has changed meanwhile.
    """
    with hold_lock(place.records / "snapshot.lock"):
        forget_brought(vault_at(place), snapshots)


def forget_brought(vault: Git, snapshots: Iterable[Snapshot]) -> None:
    """Forget snapshots of a workspace that never was on this host. The caller says that their time is over.

    Raises:
        GitError: One has changed meanwhile.
    """
    for snapshot in snapshots:
        vault.run("update-ref", "-d", snapshot.ref, snapshot.commit)


def forget_chain(vault: Git, order_id: str) -> None:
    """Forget what this host knew of a work order on the checkpoint remote, when its last snapshot is forgotten.

    Raises:
        GitError: git failed.
    """
    chain = (f"refs/kept/{order_id}/", f"refs/seen/{order_id}/")
    for ref in vault.run("for-each-ref", "--format=%(refname)", *chain).decode().splitlines():
        vault.run("update-ref", "-d", ref)


def has_forgotten(vault: Git, kept_for: timedelta) -> bool:
    """Say whether there is room to be given back: the pack of what no snapshot needs is as old as that."""
    return any(is_older(path, kept_for) for path in (vault.git_dir / "objects" / "pack").glob("*.mtimes"))


def drop_forgotten(vault: Git, kept_for: timedelta) -> None:
    """Give back the room of what no snapshot has needed for so long: what is younger may be of one under way.

    Until then it lies in one pack of its own, which git calls cruft and which notes the age of each object.

    Raises:
        GitError: git failed; then nothing but room is lost.
    """
    expiry = f"{math.ceil(kept_for.total_seconds())}.seconds.ago"
    with hold_lock(vault_lock(vault.git_dir)):
        clear_unfinished_packs(vault.git_dir, kept_for)
        vault.run(
            *("repack", "--cruft", f"--cruft-expiration={expiry}", "-d", "-l", "-q"),
            timeout_seconds=PACKING_SECONDS,
        )
        vault.run("prune", f"--expire={expiry}", timeout_seconds=PACKING_SECONDS)


def _secure(
    place: Place, options: RescueOptions, equal: Snapshot | None = None
) -> tuple[Snapshot, Snapshot | None]:
    """Return a verified snapshot of the workspace as it is now, and the same once more if it is a rescue.

    Where there is nothing to rescue, a checkpoint tells what is there; `equal` serves when it tells the same.
    """
    record = partial(
        take, ignored_limit_bytes=options.ignored_limit_bytes, step=options.step, unless_equal_to=equal
    )
    rescue = record(place, "rescue", options.reason)
    current = rescue or record(place, "checkpoint", options.reason) or equal
    if current is None:
        raise SnapshotError(f"No snapshot of {place.worktree} was recorded.")
    verify(vault_at(place), current)
    return current, rescue


def _own(place: Place, items: Mapping[bytes, Item], *, passes_on: bool = False) -> dict[bytes, Item]:
    """Return what a worktree is to hold, with its repositories as the engine says."""
    vault = vault_at(place)
    baseline = find_baseline(vault, place.order_id)
    before = read(vault, baseline.commit) if baseline is not None else {}
    return own_items(vault, items, before, place.worktree, passes_on=passes_on)


def disarm_repository(place: Place) -> None:
    """Rename what git would run or follow in `.git`, where no snapshot can be taken: no byte goes.

    `own_repository` puts back what is the engine's when a snapshot can be taken again.

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
    """Return the repositories that git looks into and no snapshot holds: in an ignored folder over the limit."""
    paths = (join(path, GIT_FOLDER) for path in gitlinks(f"{place.worktree}/.git"))
    return [path for path in paths if path not in have and os.path.lexists(place.worktree / os.fsdecode(path))]


def _rename(root: int, path: bytes) -> None:
    """Give what no snapshot holds a name under which git neither runs nor follows it."""
    folder, _, name = path.rpartition(b"/")
    with close_after(open_below(root, folder)) as holder:
        os.rename(name, name + ASIDE + secrets.token_hex(4).encode(), src_dir_fd=holder, dst_dir_fd=holder)


def _within(then: Mapping[bytes, Item], now: Mapping[bytes, Item], folder: bytes) -> Mapping[bytes, Item]:
    """Return what is there now, with one folder of the root as it was then; all as it was then for no folder."""
    if not folder:
        return then
    parts = ((then, True), (now, False))
    return {
        path: item
        for items, own in parts
        for path, item in items.items()
        if (path.split(b"/")[0] == folder) is own
    }


def _without_heavy(want: Mapping[bytes, Item], left_out: Mapping[bytes, str]) -> dict[bytes, Item]:
    """Return what is wanted without ignored folders that are over the limit now: those stay as they are."""
    heavy = {path for path, reason in left_out.items() if reason == OVER_LIMIT}
    return {
        path: item
        for path, item in want.items()
        if item.in_tree or not any(top in heavy for top in (path, *above(path)))
    }


def _is_in_the_way(path: bytes, want: Mapping[bytes, Item]) -> bool:
    """Say whether something that was left out lies where something is wanted, or in a folder that is not."""
    return path in want or any(folder in want and want[folder].mode != FOLDER for folder in above(path))


def _refuse(place: Place, left_out: Iterable[bytes], remedy: str) -> None:
    """Refuse to remove what no snapshot holds.

    Raises:
        SnapshotError: There is something.
    """
    paths = [shown_path(path) for path in left_out]
    if not paths:
        return
    message = f"{place.worktree} holds what no snapshot does: {name_some(paths, _SHOWN_PATHS)}."
    raise SnapshotError(message, remedy=remedy)


def _move_out(root: int, paths: Iterable[bytes], aside: Path) -> None:
    """Take what may be lost out of a workspace and remove it."""
    _clear(aside)
    aside.mkdir(mode=0o700)
    for number, path in enumerate(paths):
        folder, _, name = path.rpartition(b"/")
        with close_after(open_below(root, folder)) as holder:
            os.rename(name, aside / str(number), src_dir_fd=holder)
    _clear(aside)


def _aside(place: Place) -> Path:
    """Return where a workspace lies while it is removed; `~` is no character of an id."""
    return place.worktree.with_name(f"{place.worktree.name}~removed")


def _moved_out(place: Place) -> Path:
    return place.worktree.with_name(f"{place.worktree.name}~left")


def _clear(aside: Path) -> None:
    if aside.exists():
        remove_folder(aside)


@contextmanager
def _naming(place: Place, current: Snapshot) -> Iterator[None]:
    """Name place and remedy where the disk fails on the way."""
    try:
        yield
    except OSError as error:
        message = f"{place.worktree} could not be changed completely: {error}."
        remedy = f"All that was there is in snapshot {current.name}; remove what is in the way, then try again."
        raise SnapshotError(message, remedy=remedy) from error
