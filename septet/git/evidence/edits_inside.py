"""Edits in the worktrees of submodules: a commit holds the commit of a submodule, but none of its files.

No git reads the configuration that an agent left in a submodule: a separate repository of the engine borrows the
submodule's objects and compares the submodule's files with its commit.
"""

import os
from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from septet.errors import GitError, WorkspaceError
from septet.git.engine.engine import Git
from septet.git.engine.place import Place
from septet.git.snapshots.pipes import refuse_pipes
from septet.git.worktree.changes import read_status, shown_path
from septet.git.worktree.dot_git import read_file, read_head, refuse_links
from septet.git.worktree.foreign import refuse_foreign
from septet.git.worktree.view import view_git

_GITLINK: Final = b"160000 "
_POINTER: Final = b"gitdir: "
_POINTER_LIMIT_BYTES: Final = 4096
_DEEPEST: Final = 5
_FOLDER: Final = "inside"
_ATTRIBUTES: Final = "* -filter !diff\n"


def edits_inside(place: Place, since: str) -> tuple[list[str], list[str]]:
    """Return the uncommitted changes in submodules, and an error for each submodule that cannot be read.

    Args:
        place: The work order's place.
        since: An ISO 8601 time; files last touched before, such as those that a set-up command built, are left
            out.
    """
    if not has_submodules(place):
        return [], []
    refuse_pipes(place.worktree)
    found, unknown = list[str](), list[str]()
    began = int(datetime.fromisoformat(since).timestamp())
    waiting = [(place.worktree / os.fsdecode(path), 1) for path in _submodules(view_git(place))]
    while waiting:
        folder, depth = waiting.pop(0)
        try:
            if (git := _view_of(place, folder)) is None:
                continue
            edited = [folder / os.fsdecode(path) for path in _edits_in(git)]
            waiting += [(folder / os.fsdecode(path), depth + 1) for path in _submodules(git) if depth < _DEEPEST]
        except (GitError, WorkspaceError, OSError) as error:
            unknown.append(f"{_name_of(place, folder)}: {error}")
            continue
        found += [_name_of(place, path) for path in edited if _is_newer(path, began)]
    return found, unknown


def has_submodules(place: Place) -> bool:
    """Return whether the worktree names submodules."""
    return os.path.lexists(place.worktree / ".gitmodules")


def _submodules(git: Git) -> list[bytes]:
    listed = git.run("ls-files", "--stage", "-z").split(b"\0")
    return [line.partition(b"\t")[2] for line in listed if line.startswith(_GITLINK)]


def _edits_in(git: Git) -> Iterator[bytes]:
    output = git.run("status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=dirty")
    return (entry.path for entry in read_status(output) if entry.unstaged != ".")  # the index is the commit


def _view_of(place: Place, folder: Path) -> Git | None:
    """Return a separate repository of the engine over a submodule, with the submodule's commit in its index.

    Returns `None` if the submodule is not checked out.

    Raises:
        WorkspaceError: The submodule's `.git` leads elsewhere, or has no commit.
    """
    dot_git = folder / ".git"
    if not os.path.lexists(dot_git):
        return None  # it is not checked out
    git_dir = dot_git if dot_git.is_dir() else _pointed_at(dot_git)
    root = place.worktree.resolve()
    if folder.resolve() != root / folder.relative_to(place.worktree) or not git_dir.is_relative_to(root):
        raise WorkspaceError(f"{dot_git} leads elsewhere.")
    refuse_links(git_dir)
    refuse_foreign(git_dir, b"")
    head = read_head(git_dir).sha
    view = place.records / _FOLDER / sha256(os.fsencode(folder.relative_to(place.worktree))).hexdigest()[:16]
    git = Git(view, folder, {**place.env, "GIT_OPTIONAL_LOCKS": "1"})
    if not (view / "HEAD").exists():
        view.mkdir(mode=0o700, parents=True, exist_ok=True)
        git.init()
        (view / "info").mkdir(exist_ok=True)
        (view / "info" / "attributes").write_text(_ATTRIBUTES, encoding="ascii")
    (view / "index.lock").unlink(missing_ok=True)  # left by a git that was killed
    (view / "objects" / "info" / "alternates").write_bytes(os.fsencode(git_dir / "objects") + b"\n")
    git.run("read-tree", "-m", "-i", head)
    return git


def _pointed_at(dot_git: Path) -> Path:
    content = (read_file(dot_git, _POINTER_LIMIT_BYTES) or b"").strip()
    if not content.startswith(_POINTER):
        raise WorkspaceError(f"{dot_git} names no repository.")
    return (dot_git.parent / os.fsdecode(content.removeprefix(_POINTER))).resolve()


def _is_newer(path: Path, began: int) -> bool:
    """Return whether a file was touched after the time `began`, or is missing."""
    try:
        return path.lstat().st_ctime >= began
    except FileNotFoundError:
        return True


def _name_of(place: Place, path: Path) -> str:
    return shown_path(os.fsencode(path.relative_to(place.worktree)))
