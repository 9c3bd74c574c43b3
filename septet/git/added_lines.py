"""The lines that a work order adds: staged for the next commit, or in commits that are to be pushed."""

import secrets
from typing import Final

from septet.git.engine import Git
from septet.git.place import Place
from septet.git.view import view_git
from septet.key_scan.patches import AddedLine, read_added_lines

_PATCH: Final = ("--patch", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-prefix")
_BYTES: Final = 64 * 1024 * 1024
_SECONDS: Final = 120.0


def staged_lines(git: Git, head: str) -> tuple[AddedLine, ...]:
    """Return what the index of `git` adds to commit `head`, in the first 64 MiB of its patch; no binary file.

    Raises:
        GitError: git could not tell, or not in time.
    """
    patch = git.run(
        "diff-index", "--cached", "--no-renames", *_PATCH, head, "--", timeout_seconds=_SECONDS, limit_bytes=_BYTES
    )
    return tuple(line for line in read_added_lines(patch) if line.path)


def committed_lines(place: Place, since: str, sha: str) -> tuple[AddedLine, ...]:
    """Return what the commits after `since` add, in messages and files, also where a later one removes it.

    In the first 64 MiB of their patches, the newest first; of a merge, what it adds to its first parent.

    Raises:
        GitError: git could not tell, or not in time.
    """
    if since == sha:
        return ()
    mark = secrets.token_hex(16)
    log = view_git(place).run(
        "log", "--no-renames", "--diff-merges=first-parent", *_PATCH, f"--format={mark}%H%n%B", f"{since}..{sha}",
        "--", timeout_seconds=_SECONDS, limit_bytes=_BYTES,
    )  # fmt: skip
    lines: list[AddedLine] = []
    for commit in log.split(mark.encode())[1:]:
        name, _, patch = commit.partition(b"\n")
        lines += read_added_lines(patch, name.decode(errors="replace"))
    return tuple(line for line in lines if line.path)
