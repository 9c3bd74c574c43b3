"""Handle files of a workspace that no snapshot contains: leave them, move them away, or refuse a deletion."""

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from posixpath import basename

from septet.errors import SnapshotError
from septet.git.engine.place import Place
from septet.git.vault.facts import FOLDER
from septet.git.vault.layout import Item
from septet.git.vault.survey import OPEN_FOLDER, OVER_LIMIT, above, open_below, parent
from septet.git.worktree.view import shown_path
from septet.system.durable import close_after
from septet.system.text import name_some


def moved_out(place: Place) -> Path:
    """Return the path of a folder next to a workspace, for files that are moved out of the workspace."""
    return place.worktree.with_name(f"{place.worktree.name}~left")


def aside_of(place: Place) -> Path | None:
    """Return the folder with files that were moved out of a workspace; `None` if there are none."""
    folder = moved_out(place)
    return folder if folder.exists() else None


def set_aside(place: Place, paths: Iterable[bytes]) -> None:
    """Move files of a workspace to the folder `moved_out`.

    Raises:
        SnapshotError: The disk failed halfway; the other files stay in place.
    """
    folder = moved_out(place)
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
                    os.chmod(name, stat.S_IRWXU, dir_fd=holder)  # otherwise it could not be moved
                os.rename(name, target, src_dir_fd=holder)
    except OSError as error:
        message = f"{place.worktree} could not be changed completely: {error}."
        raise SnapshotError(message, remedy=f"Make room in {folder.parent}, then run `septet retry`.") from error


def without_heavy(want: Mapping[bytes, Item], left_out: Mapping[bytes, str]) -> dict[bytes, Item]:
    """Return `want`, the content to restore, without ignored paths of `left_out` over the limit: these stay."""
    heavy = {path for path, reason in left_out.items() if reason == OVER_LIMIT}
    return {
        path: item
        for path, item in want.items()
        if item.in_tree or not any(top in heavy for top in (path, *above(path)))
    }


def is_in_the_way(path: bytes, want: Mapping[bytes, Item]) -> bool:
    """Return whether the left-out file `path` is in the way of `want`, the content to restore."""
    return path in want or any(folder in want and want[folder].mode != FOLDER for folder in above(path))


def refuse_unkept(place: Place, left_out: Iterable[bytes], remedy: str) -> None:
    """Raise if there are files that no snapshot contains; call this before a deletion.

    Raises:
        SnapshotError: `left_out` has a file.
    """
    paths = [shown_path(path) for path in left_out]
    if not paths:
        return
    message = f"{place.worktree} holds what no snapshot does: {name_some(paths, 5)}."
    raise SnapshotError(message, remedy=remedy)
