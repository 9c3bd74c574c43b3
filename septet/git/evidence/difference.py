"""Show people the difference between a work order's base commit and its worktree.

This locks and writes nothing, and may run while an agent works.
"""

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from septet.errors import GitError
from septet.git.engine.engine import Git
from septet.git.engine.place import Place
from septet.git.vault.survey import refuse_pipes
from septet.git.worktree.dot_git import refuse_foreign, refuse_links
from septet.git.worktree.view import borrowed_from, view_folder

_LOOK_SECONDS: Final = 10.0
_UNTRACKED_LISTED: Final = 2000
_LARGEST_READ_BYTES: Final = 100 * 1024 * 1024
"""The size of the largest new file that is shown, in bytes, because git reads new files whole."""
_FILES_COUNTED: Final = 500
_COUNTS_BYTES: Final = 256 * 1024
_BINARY_FROM: Final = "1m"
"""The size from which git compares no lines of a file."""
_EMPTY_BLOB: Final = b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
_COUNT: Final = re.compile(r"(?:(\d+)|-)\t(?:(\d+)|-)\t(.+)")
_DIFF: Final = (
    "diff", "--numstat", "--patch", "--find-renames", "--no-color", "--no-ext-diff", "--no-textconv",
    "--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=dirty",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileCount:
    """A file that differs from the base commit, with its numbers of changed lines."""

    path: str
    """The path as git shows it; for a rename, both names."""
    added: int | None
    """The number of added lines; `None` for a binary or very large file, as for `removed`."""
    removed: int | None


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between base commit and worktree, committed or not, except ignored files."""

    files: tuple[FileCount, ...]
    patch: str
    whole: bool
    """Whether `files` and `patch` are complete."""


def difference(place: Place, *, limit_bytes: int) -> Difference:
    """Return the difference between base commit and worktree, with at most `limit_bytes` of the patch.

    git uses a copy of the index of Septet's view, so agents and steps may run meanwhile. A symlink is shown as a
    symlink.

    Raises:
        WorkspaceError: The worktree's `.git` is missing or leads elsewhere, or git would wait at a named pipe.
        GitError: git could not read the worktree, or took too long.
        OSError: There is no worktree, or no room for a copy of the index.
    """
    refuse_links(place.worktree / ".git")
    refuse_foreign(place.worktree / ".git", borrowed_from(place.mirror))
    refuse_pipes(place.worktree)
    with tempfile.TemporaryDirectory(prefix="septet-look-") as folder:
        index = Path(folder) / "index"
        shutil.copy2(view_folder(place) / "index", index)
        git = Git(view_folder(place), place.worktree, place.env, index=index)
        all_listed = _take_up_untracked(git, place.worktree)
        content = git.run(
            *(*_DIFF, place.base_sha, "--"),
            timeout_seconds=_LOOK_SECONDS,
            limit_bytes=_COUNTS_BYTES + limit_bytes + 1,
            core__bigFileThreshold=_BINARY_FROM,
        )
    return _read(content, limit_bytes, all_listed=all_listed)


def _take_up_untracked(git: Git, worktree: Path) -> bool:
    """Add the untracked files to the index as empty files; return whether the index has all of them.

    A file that is deleted meanwhile does not make the result false.
    """
    listing = git.run("ls-files", "--others", "--exclude-standard", "-z", timeout_seconds=_LOOK_SECONDS)
    paths = [path for path in listing.split(b"\0") if path and not path.endswith(b"/")]
    shown = [path for path in paths[:_UNTRACKED_LISTED] if _size(worktree, path) <= _LARGEST_READ_BYTES]
    entries = b"".join(b"100644 %s\t%s\0" % (_EMPTY_BLOB, path) for path in shown)
    update = git.try_run("update-index", "-z", "--index-info", stdin=entries, timeout_seconds=_LOOK_SECONDS)
    if update.timed_out:
        raise GitError(f"git update-index in {git.git_dir} took longer than {_LOOK_SECONDS:.0f} s.")
    # Paths that git refuses in an index are not shown.
    return len(paths) == len(shown) and update.exit_code == 0


def _size(worktree: Path, path: bytes) -> int:
    try:
        return (worktree / os.fsdecode(path)).lstat().st_size
    except OSError:
        return 0


def _read(content: bytes, limit_bytes: int, *, all_listed: bool) -> Difference:
    counts, _, patch = content.partition(b"\n\n")
    files = [match.groups() for line in counts.decode("utf-8", "backslashreplace").split("\n")
             if (match := _COUNT.fullmatch(line))]  # fmt: skip
    return Difference(
        files=tuple(
            FileCount(path, int(added) if added else None, int(removed) if removed else None)
            for added, removed, path in files[:_FILES_COUNTED]
        ),
        patch=patch[:limit_bytes].decode("utf-8", "replace"),
        whole=all_listed and len(files) <= _FILES_COUNTED and len(patch) <= limit_bytes,
    )
