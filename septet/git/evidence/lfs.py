"""Files that a repository keeps in Git LFS: Septet runs no filter, and commits the file that the agent wrote."""

import os
import shlex
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from septet.git.engine.engine import Git
from septet.git.engine.place import Place
from septet.git.worktree.inside import open_inside
from septet.system.text import name_some

_POINTER: Final = b"version https://git-lfs.github.com/spec/"
_NAMED: Final = 5
_ATTRIBUTES: Final = ".gitattributes"
_READ_BYTES: Final = 1024 * 1024


def whole_lfs_files(place: Place, paths: Iterable[str]) -> str:
    """Return a sentence that names files that are committed whole despite an LFS attribute; empty if none are.

    Args:
        place: The work order's place.
        paths: The changed files. The worktree's attributes count, not the engine's, which run no filter.

    Raises:
        GitError: git cannot read the attributes.
    """
    whole = [path for path in paths if _is_whole(place, path)]
    if not whole or not any(_names_lfs(place, folder) for path in whole for folder in Path(path).parents):
        return ""
    with tempfile.TemporaryDirectory(dir=place.records, prefix="attributes-") as folder:
        empty = Git(Path(folder), env=place.env)
        empty.init("--bare")
        asked = Git(Path(folder), place.worktree, place.env)
        answer = asked.run(
            *("check-attr", "-z", "--stdin", "filter"),
            stdin=b"".join(os.fsencode(path) + b"\0" for path in whole),
            core__bare="false",
        )
    fields = answer.split(b"\0")
    kept = [os.fsdecode(path) for path, value in zip(fields[::3], fields[2::3], strict=False) if value == b"lfs"]
    if not kept:
        return ""
    command = shlex.join(("git", "lfs", "migrate", "import", "--no-rewrite", *kept[:_NAMED]))
    return (
        f"{name_some(kept, _NAMED)}: committed whole, though {_ATTRIBUTES} gives it to Git LFS: Septet runs no "
        f"filter. In a separate clone with git-lfs, check out the branch, run `{command}`, and push."
    )


def _is_whole(place: Place, path: str) -> bool:
    with open_inside(place.worktree, path) as file:
        return file is not None and not file.read(len(_POINTER)).startswith(_POINTER)


def _names_lfs(place: Place, folder: Path) -> bool:
    with open_inside(place.worktree, str(folder / _ATTRIBUTES)) as file:
        return file is not None and b"filter=lfs" in file.read(_READ_BYTES)
