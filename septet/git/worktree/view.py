"""The engine's own view of a worktree: a repository with settings that no agent can write, over the agent's files.

It lies in the engine's records. Its config, attributes, HEAD and index are its own; its objects, refs and excludes
are links into the worktree's `.git`, so that commits and branches of either are commits and branches of both.
Every git command of the engine that looks at a worktree runs here: filters, hooks, file-system monitors, external
diffs, signing programs, includes and promisor remotes of the agent's own config do not exist for it.
"""

import shutil
from collections import Counter
from pathlib import Path
from typing import Final

from septet.errors import WorkspaceError
from septet.git.engine.engine import Git
from septet.git.engine.place import Place, borrowed_from
from septet.git.worktree.dot_git import Head, read_file, read_head
from septet.git.worktree.foreign import refuse_foreign
from septet.system.durable import write_atomically

_CONFIG: Final = """\
[core]
\tbare = false
\tlogAllRefUpdates = false
\tuseReplaceRefs = false
\tcommitGraph = false
\tmultiPackIndex = false
\tsafecrlf = false
\tsplitIndex = false
[diff]
\tignoreSubmodules = dirty
\trenames = true
[i18n]
\tcommitEncoding = UTF-8
[index]
\tskipHash = false
[push]
\tfollowTags = false
\trecurseSubmodules = no
"""
# Line endings are converted as the repository wants it; programs (`filter`) are not run, so that an LFS pointer
# stays a pointer, and what an agent adds is committed as it is rather than uploaded by nobody. Whether a file is
# text its content says: by an attribute an agent could have the search for keys pass over it.
_ATTRIBUTES: Final = b"* -filter !diff\n"
_LINKS: Final = ("objects", "refs", "packed-refs")
_CHECKSUM_BYTES: Final = 20
_MOST_ENTRIES: Final = 1_000_000
"""Of a commit's tree; the largest repositories that are public have half of that."""


def view_folder(place: Place) -> Path:
    """Return the folder of the engine's view."""
    return place.records / "view"


def view_git(place: Place) -> Git:
    """Return the engine's view, with the index that holds its HEAD's tree.

    `git status` may keep in the index what it found out: most files of a fresh checkout are as young as the index,
    and it would read them again each time.

    Raises:
        WorkspaceError: What git would read of the worktree's `.git` is no plain file: see `refuse_foreign`.
    """
    refuse_foreign(place.worktree / ".git", borrowed_from(place.mirror))
    folder = view_folder(place)
    return Git(folder, place.worktree, {**place.env, "GIT_OPTIONAL_LOCKS": "1"}, index=folder / "index")


def make_view(place: Place, config: str) -> None:
    """Make the view's folder, without an index.

    Args:
        place: The work order's place.
        config: What `git init` found out about the file system the worktree lies on, as config text.
    """
    folder, dot_git = view_folder(place), place.worktree / ".git"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "info").mkdir(mode=0o700, parents=True)
    (folder / "config").write_text(config + _CONFIG, encoding="utf-8")
    _write_attributes(place)
    (folder / "info" / "exclude").symlink_to(dot_git / "info" / "exclude")
    for name in _LINKS:
        (folder / name).symlink_to(dot_git / name)
    _note_held(place, place.base_sha)


def hold_head(place: Place) -> Head:
    """Let the view's index hold the tree of the worktree's HEAD, and return that HEAD.

    Raises:
        WorkspaceError: HEAD leads to no commit, or to a tree that nobody could check out.
        GitError: The commit cannot be read.
    """
    head = read_head(place.worktree / ".git")
    _write_attributes(place)
    held = read_file(view_folder(place) / "HEAD") or b""
    if held != head.sha.encode() + b"\n":
        (view_folder(place) / "index.lock").unlink(missing_ok=True)  # of a git that was killed
        _bound_tree(place, head.sha)
        _bound_size(place, held.decode().strip() or place.base_sha, head.sha)
        view_git(place).run("read-tree", "-m", "-i", head.sha)  # -i: the files need not match
        _note_held(place, head.sha)
    return head


def _write_attributes(place: Place) -> None:
    """Write the view's attributes, where it has none or those of an earlier release."""
    path = view_folder(place) / "info" / "attributes"
    if read_file(path) != _ATTRIBUTES:
        write_atomically(path, _ATTRIBUTES)


def _bound_tree(place: Place, sha: str) -> None:
    """See that a commit of the agent's unfolds to no more than a disk holds, which few objects can go over.

    Raises:
        WorkspaceError: It does not.
        GitError: The commit cannot be read.
    """
    listing = view_git(place).run(
        "ls-tree", "-r", "-t", "--format=.", sha, limit_bytes=_MOST_ENTRIES * len(b".\n")
    )
    if len(listing) >= _MOST_ENTRIES * len(b".\n"):
        raise WorkspaceError(
            f"HEAD of {place.worktree}, commit {sha}: tree limit of {_MOST_ENTRIES} entries reached.",
            remedy="`septet retry ID --from STEP` takes that commit back: name the step that made it.",
        )


def _bound_size(place: Place, since: str, sha: str) -> None:
    """See that what a commit of the agent's adds is no larger than what may be added to the worktree.

    Raises:
        WorkspaceError: It is.
        GitError: The commit cannot be read.
    """
    if not place.tree_limit_bytes:
        return
    git, difference = view_git(place), ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames")
    seen = git.try_run(*difference, since, sha)
    # A return to a checkpoint takes out the commits that came after it, `since` perhaps among them.
    changes = git.run(*difference, place.base_sha, sha) if seen.exit_code else seen.stdout
    blobs = Counter(change.split()[3] for change in changes.split(b"\0")[::2] if change.startswith(b":"))
    sizes = git.run("cat-file", "--batch-check=%(objectsize)", stdin=b"\n".join((*blobs, b"")))
    added = sum(
        int(size) * count
        for size, count in zip(sizes.splitlines(), blobs.values(), strict=True)
        if size.isdigit()  # a blob that is gone, and what a submodule names, have none
    )
    if added > place.tree_limit_bytes:
        raise WorkspaceError(
            f"HEAD of {place.worktree}, commit {sha}: tree limit of {place.tree_limit_bytes >> 20} MiB reached.",
            remedy="`septet retry ID --from STEP` takes that commit back: name the step that made it. Or start "
            "the worker (`septet up`) again with a larger SEPTET_TREE_LIMIT_MIB, then run `septet retry ID`.",
        )


def take_index(place: Place, index: Path, sha: str) -> None:
    """Let the view's index be `index`, which holds the tree of commit `sha`, and give the agent the same."""
    index.replace(view_folder(place) / "index")
    _note_held(place, sha)
    give_index(place, place.worktree / ".git")


def give_index(place: Place, git_dir: Path) -> None:
    """Put a copy of the view's index where the agent's git looks, and note its checksum."""
    own, copy = view_folder(place) / "index", git_dir / "index.septet"
    copy.unlink(missing_ok=True)
    shutil.copy2(own, copy)  # with its time stamp: git tells by it which files it has to read again
    copy.replace(git_dir / "index")
    write_atomically(view_folder(place) / "given", own.read_bytes()[-_CHECKSUM_BYTES:])


def touched_index(place: Place) -> bytes | None:
    """Return the agent's index as it wrote it, or `None` where it is still the one it was given, or unreadable."""
    content = read_file(place.worktree / ".git" / "index")
    if content is None or content[-_CHECKSUM_BYTES:] == read_file(view_folder(place) / "given"):
        return None
    return content


def _note_held(place: Place, sha: str) -> None:
    """Note which commit the view's index holds, as the view's HEAD."""
    write_atomically(view_folder(place) / "HEAD", sha.encode() + b"\n")
