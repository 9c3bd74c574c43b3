"""Septet's own view of a worktree: a repository for the agent's files, with settings that no agent can write.

The view is in Septet's records, with its own config, attributes, HEAD and index. Objects, refs and excludes are
links into the worktree's `.git`, so both have the same commits and branches. Every git command that reads a
worktree runs in the view. It ignores filters, hooks, file-system monitors, external diffs, signing programs,
includes and promisor remotes of the agent's config.
"""

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from septet.contracts.facts import FileChange, Operation
from septet.errors import WorkspaceError
from septet.git.engine.engine import Git
from septet.git.engine.place import Place
from septet.git.worktree.dot_git import Head, read_file, read_head, refuse_foreign, refuse_links
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
# Line endings are converted as the repository's attributes say. No `filter` program runs: an LFS pointer stays a
# pointer, and a file that an agent adds is committed as it is, since nothing would upload it to LFS. The content
# decides whether a file is text: an agent could use an attribute to hide a file from the search for keys.
_ATTRIBUTES: Final = b"* -filter !diff\n"
_CHECKSUM_BYTES: Final = 20
_MOST_ENTRIES: Final = 1_000_000
"""The most entries of a commit's tree, twice as many as the largest public repositories have."""


def view_folder(place: Place) -> Path:
    """Return the folder of Septet's own view of a worktree."""
    return place.records / "view"


def view_git(place: Place) -> Git:
    """Return Septet's view of a worktree, with an index of the commit that `hold_head` saw last.

    `git status` may update this index, because otherwise git would read most files of a fresh checkout each time.

    Raises:
        WorkspaceError: A file of `.git` that git would read is not a plain file: see `refuse_foreign`.
    """
    refuse_foreign(place.worktree / ".git", borrowed_from(place.mirror))
    folder = view_folder(place)
    return Git(folder, place.worktree, {**place.env, "GIT_OPTIONAL_LOCKS": "1"}, index=folder / "index")


def make_view(place: Place, config: str) -> None:
    """Create the folder of Septet's view, without an index; `config` is the text of a new repository's config."""
    folder, dot_git = view_folder(place), place.worktree / ".git"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "info").mkdir(mode=0o700, parents=True)
    (folder / "config").write_text(config + _CONFIG, encoding="utf-8")
    _write_attributes(place)
    (folder / "info" / "exclude").symlink_to(dot_git / "info" / "exclude")
    for name in ("objects", "refs", "packed-refs"):
        (folder / name).symlink_to(dot_git / name)
    _note_held(place, place.base_sha)


def lost_repository(place: Place) -> str:
    """Return how the worktree lost its `.git`, as a text; empty if it has a `.git`.

    Raises:
        WorkspaceError: A file of `.git` that git would read is not a plain file.
    """
    git_dir = place.worktree / ".git"
    if git_dir.is_symlink() or git_dir.is_file():
        return "`.git` was replaced by a file or a link"
    for name in (".git", ".git/objects", ".git/refs"):
        if not os.path.lexists(place.worktree / name):
            return f"`{name}` was deleted"
    refuse_links(git_dir)
    try:
        head = read_head(git_dir)
    except WorkspaceError:
        return "`.git` was made again, or its branch was deleted: HEAD leads to no commit"
    is_known = (read_file(view_folder(place) / "HEAD") or b"").strip().decode() == head.sha
    if is_known or view_git(place).try_run("cat-file", "-e", f"{place.base_sha}^{{commit}}").exit_code == 0:
        return ""
    return f"`.git` was made again: it does not have commit {place.base_sha[:12]}, where the work began"


def hold_head(place: Place) -> Head:
    """Update the view's index to the worktree's HEAD, and return that HEAD.

    Raises:
        WorkspaceError: HEAD leads to no commit, or to a tree that is too large for a checkout.
        GitError: The commit cannot be read.
    """
    head = read_head(place.worktree / ".git")
    _write_attributes(place)
    held = read_file(view_folder(place) / "HEAD") or b""
    if held != head.sha.encode() + b"\n":
        (view_folder(place) / "index.lock").unlink(missing_ok=True)  # left by a git that was killed
        _bound_tree(place, head.sha)
        _bound_size(place, held.decode().strip() or place.base_sha, head.sha)
        view_git(place).run("read-tree", "-m", "-i", head.sha)  # -i: the files need not match
        _note_held(place, head.sha)
    return head


def _write_attributes(place: Place) -> None:
    """Write the view's attributes if they are missing or from an earlier release."""
    path = view_folder(place) / "info" / "attributes"
    if read_file(path) != _ATTRIBUTES:
        write_atomically(path, _ATTRIBUTES)


def _bound_tree(place: Place, sha: str) -> None:
    """Refuse an agent's commit with too many entries: a few objects can describe millions of files."""
    listing = view_git(place).run(
        "ls-tree", "-r", "-t", "--format=.", sha, limit_bytes=_MOST_ENTRIES * len(b".\n")
    )
    if len(listing) >= _MOST_ENTRIES * len(b".\n"):
        raise WorkspaceError(
            f"HEAD of {place.worktree}, commit {sha}: tree limit of {_MOST_ENTRIES} entries reached.",
            remedy="`septet retry ID --from STEP` takes that commit back: name the step that made it.",
        )


def _bound_size(place: Place, since: str, sha: str) -> None:
    """Refuse an agent's commit that adds too many bytes to the worktree since commit `since`."""
    if not place.tree_limit_bytes:
        return
    git, difference = view_git(place), ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames")
    seen = git.try_run(*difference, since, sha)
    # A return to a checkpoint removes the commits after it, possibly including `since`.
    changes = git.run(*difference, place.base_sha, sha) if seen.exit_code else seen.stdout
    blobs = Counter(change.split()[3] for change in changes.split(b"\0")[::2] if change.startswith(b":"))
    sizes = git.run("cat-file", "--batch-check=%(objectsize)", stdin=b"\n".join((*blobs, b"")))
    added = sum(
        int(size) * count
        for size, count in zip(sizes.splitlines(), blobs.values(), strict=True)
        if size.isdigit()  # a missing blob, and a submodule's commit, have no size
    )
    if added > place.tree_limit_bytes:
        raise WorkspaceError(
            f"HEAD of {place.worktree}, commit {sha}: tree limit of {place.tree_limit_bytes >> 20} MiB reached.",
            remedy="`septet retry ID --from STEP` takes that commit back: name the step that made it. Or start "
            "the worker (`septet up`) again with a larger SEPTET_TREE_LIMIT_MIB, then run `septet retry ID`.",
        )


def take_index(place: Place, index: Path, sha: str) -> None:
    """Use `index`, an index of commit `sha`, as the view's index, and copy it to the agent's `.git`."""
    index.replace(view_folder(place) / "index")
    _note_held(place, sha)
    give_index(place, place.worktree / ".git")


def give_index(place: Place, git_dir: Path) -> None:
    """Copy the view's index to the agent's `.git`, and record its checksum."""
    own, copy = view_folder(place) / "index", git_dir / "index.septet"
    copy.unlink(missing_ok=True)
    shutil.copy2(own, copy)  # with its time stamp, by which git detects files that it must read again
    copy.replace(git_dir / "index")
    write_atomically(view_folder(place) / "given", own.read_bytes()[-_CHECKSUM_BYTES:])


def touched_index(place: Place) -> bytes | None:
    """Return the content of the agent's index; `None` if the agent has not changed it, or if it is unreadable."""
    content = read_file(place.worktree / ".git" / "index")
    if content is None or content[-_CHECKSUM_BYTES:] == read_file(view_folder(place) / "given"):
        return None
    return content


def _note_held(place: Place, sha: str) -> None:
    """Record that the view's index is of commit `sha`."""
    write_atomically(view_folder(place) / "HEAD", sha.encode() + b"\n")


def borrowed_from(mirror: Path) -> bytes:
    """Return the content of git's `alternates` in a worktree: the relative path of the mirror's objects."""
    return b"../../../../" + os.fsencode(Path(mirror.parent.name, mirror.name, "objects"))


@dataclass(frozen=True, slots=True)
class StatusEntry:
    """One path in `git status`: how the index differs from HEAD, and the worktree from the index."""

    path: bytes
    staged: str
    """How the index differs from HEAD: one of `.AMDRCTU`, or `?` for an untracked file."""
    unstaged: str
    origin: bytes | None = None
    """The earlier path of a renamed or copied file; `None` for other files."""

    @property
    def is_untracked(self) -> bool:
        """Whether the index lacks the path."""
        return self.staged == "?"

    @property
    def is_nested_repository(self) -> bool:
        """Whether the path is a separate repository, which no commit can include."""
        return self.is_untracked and self.path.endswith(b"/")

    @property
    def change(self) -> tuple[Operation, bytes] | None:
        """The operation between HEAD and the worktree, and the path; `None` if neither has the file."""
        is_gone = "D" in (self.staged, self.unstaged)
        if "R" in (self.staged, self.unstaged) and self.origin is not None:
            return ("delete", self.origin) if is_gone else ("rename", self.path)
        if self.staged in {"?", "A", "C"} or self.unstaged in {"A", "C"}:
            return None if is_gone else ("create", self.path)
        return ("delete" if is_gone else "modify", self.path)


def read_status(output: bytes) -> Iterator[StatusEntry]:
    """Yield the entries of `git status --porcelain=v2 -z`, without ignored files."""
    fields = iter(output.split(b"\0"))
    for field in fields:
        match field[:2]:
            case b"1 ":
                yield _entry(field, 8)
            case b"2 ":
                yield _entry(field, 9, next(fields))
            case b"u ":
                yield StatusEntry(field.split(b" ", 10)[10], "U", "U")
            case b"? ":
                yield StatusEntry(field[2:], "?", "?")


def read_name_status(output: bytes) -> Iterator[tuple[Operation, bytes]]:
    """Yield the operations and paths of `git diff --name-status -z`."""
    fields = iter(output.split(b"\0"))
    for status in fields:
        match status[:1]:
            case b"A":
                yield "create", next(fields)
            case b"D":
                yield "delete", next(fields)
            case b"R" | b"C":
                next(fields)
                yield "rename" if status[:1] == b"R" else "create", next(fields)
            case b"":
                return
            case _:
                yield "modify", next(fields)


def file_changes(changes: Iterable[tuple[Operation, bytes]]) -> tuple[FileChange, ...]:
    """Return the changes as a step's result lists them: each once, sorted by path."""
    pairs = {(shown_path(path), operation) for operation, path in changes}
    return tuple(FileChange(path=path, operation=operation) for path, operation in sorted(pairs))


def shown_path(path: bytes) -> str:
    r"""Return a path for people; bytes that are not UTF-8 are shown as `\xNN`."""
    return path.decode("utf-8", "backslashreplace")


def _entry(field: bytes, spaces: int, origin: bytes | None = None) -> StatusEntry:
    parts = field.split(b" ", spaces)
    return StatusEntry(parts[spaces], chr(parts[1][0]), chr(parts[1][1]), origin)
