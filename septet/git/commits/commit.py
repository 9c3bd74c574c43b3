"""Commit the uncommitted part of an agent's work, and clean the messages of its commits."""

import re
from collections.abc import Callable
from typing import Final

from septet.errors import EvidenceError
from septet.git.engine.configuration import identity
from septet.git.engine.engine import Git
from septet.git.engine.place import Place
from septet.git.evidence.evidence import contains, look, stage, staging_index
from septet.git.worktree.dot_git import clear_locks, read_head, refuse_links
from septet.git.worktree.view import give_index, take_index, view_git
from septet.system.masking import mask
from septet.system.text import without_controls

_TRAILER: Final = re.compile(r"[A-Za-z0-9-]+: \S.*")


def commit_all(
    place: Place,
    message: str,
    *,
    sign: bool = False,
    examine: Callable[[Git | None, str, str], None] = lambda _git, _head, _tree: None,
    merges: str = "",
) -> str:
    """Commit all changes since HEAD, and return HEAD's commit; if there are no changes, make no commit.

    The agent's own commits stay before the new one. No hook runs. The agent's index is updated, so that `git
    status` is clean afterwards.

    Args:
        message: The whole message, untrusted text.
        sign: Sign with the worker's own git settings.
        examine: Raises an error if the work must not be committed. It takes a repository with the index of the
            work (`None` if HEAD has all work), HEAD's commit, and the tree of the work.
        merges: A second parent, which is left out if HEAD contains it; its files must be in the worktree.

    Raises:
        EvidenceError: HEAD is detached, a merge or rebase is unfinished, or the message is blank.
        WorkspaceError: `.git` is damaged.
        GitError: git failed, or the branch moved meanwhile.
    """
    clear_locks(place.worktree / ".git")
    dirt = look(place)
    if dirt.unfinished:
        raise EvidenceError(f"Nothing can be committed: {dirt.unfinished}.")
    also = merges if merges and not contains(place, dirt.head.sha, merges) else ""
    if not dirt.entries and not also:
        examine(None, dirt.head.sha, dirt.head.sha)
        give_index(place, place.worktree / ".git")
        return dirt.head.sha
    if dirt.head.branch is None:
        raise EvidenceError("Nothing can be committed: HEAD is detached, and the work belongs on its branch.")
    refuse_links(place.worktree / ".git", dirt.head.branch)
    git = stage(place, dirt)
    tree = git.text("write-tree")
    examine(git, dirt.head.sha, tree)
    sha = dirt.head.sha
    # Files that differ only in line endings are dirty to `git status`, and equal in a commit.
    if also or tree != git.text("rev-parse", f"{dirt.head.sha}^{{tree}}"):
        sha = write_commit(git, tree, (dirt.head.sha, also), _clean_message(message), sign=sign)
        git.run("update-ref", f"refs/heads/{dirt.head.branch}", sha, dirt.head.sha)
    take_index(place, staging_index(place), sha)
    return sha


def with_trailer(message: str, trailer: str) -> str:
    """Return a message with a trailer such as `Assisted-by: claude` added after its other trailers.

    An empty trailer, or one that the message has already, changes nothing.
    """
    text = message.rstrip()
    if not text or not trailer or trailer in text.splitlines():
        return message
    first, _, last = text.rpartition("\n\n")
    has_trailers = bool(first) and all(_TRAILER.fullmatch(line) for line in last.splitlines())
    between = "\n" if has_trailers else "\n\n"
    return f"{text}{between}{trailer}\n"


def write_commit(git: Git, tree: str, parents: tuple[str, ...], message: str, *, sign: bool = False) -> str:
    """Write a commit without a ref, and return its id.

    Raises:
        GitError: git failed.
    """
    git = git.with_env(**identity(git).environ)
    signing = "--gpg-sign" if sign else "--no-gpg-sign"
    named = [word for parent in parents if parent for word in ("-p", parent)]
    output = git.run("commit-tree", signing, *named, "-F", "-", tree, stdin=message.encode())
    return output.decode("ascii").strip()


def _clean_message(message: str) -> str:
    """Return the message as git writes it: no control characters, no trailing blanks, one line end at the end."""
    text = mask(without_controls(message)).encode(errors="replace").decode()[:65_536]
    cleaned = "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")
    if not cleaned:
        raise EvidenceError("Nothing can be committed: its message is blank.")
    return cleaned + "\n"


_MOST_BYTES: Final = 64 * 1024 * 1024
_PARENT: Final = b"parent "


def clean_messages(place: Place, since: tuple[str, ...], clean: Callable[[str], str]) -> str:
    """Rewrite the commits after `since` whose message `clean` changes, and return HEAD's commit.

    Trees, authors and times stay; a rewritten commit loses its signature. Files and index stay.

    Args:
        since: Commits that stay unchanged, with all their ancestors.
        clean: Returns a message as it will be published, without the line end at its end.

    Raises:
        WorkspaceError: `.git` is damaged.
        GitError: git failed, or the branch moved meanwhile.
    """
    dot_git = place.worktree / ".git"
    head = read_head(dot_git)
    if head.branch is None or head.sha in since:
        return head.sha
    git = view_git(place)
    listing = ("rev-list", "--topo-order", "--reverse", head.sha, "--not", *since, "--")
    commits = git.run(*listing, limit_bytes=_MOST_BYTES).split()
    new_names: dict[bytes, bytes] = {}
    for commit in commits:
        stored = git.run("cat-file", "commit", commit.decode(), limit_bytes=_MOST_BYTES)
        written = _new_commit(stored, new_names, clean)
        if written is not None:
            new_names[commit] = git.run("hash-object", "-t", "commit", "-w", "--stdin", stdin=written).strip()
    tip = new_names.get(head.sha.encode())
    if tip is None:
        return head.sha
    clear_locks(dot_git)
    refuse_links(dot_git, head.branch)
    git.run("update-ref", f"refs/heads/{head.branch}", tip.decode(), head.sha)
    return tip.decode()


def _new_commit(commit: bytes, new_names: dict[bytes, bytes], clean: Callable[[str], str]) -> bytes | None:
    """Return a commit with a cleaned message and rewritten parents; `None` if nothing changes."""
    head, _, message = commit.partition(b"\n\n")
    try:
        text, encoding = message.decode(), "utf-8"
    except UnicodeDecodeError:
        text, encoding = message.decode("latin-1"), "latin-1"
    cleaned = clean(text)
    lines = [_with_parent(line, new_names) for line in head.split(b"\n")]
    if cleaned.strip() == text.strip() and lines == head.split(b"\n"):
        return None
    kept, in_signature = list[bytes](), False
    for line in lines:
        in_signature = line.startswith(b"gpgsig") or (in_signature and line.startswith(b" "))
        kept += [] if in_signature else [line]
    return b"\n".join(kept) + b"\n\n" + f"{cleaned.strip() or '(no message)'}\n".encode(encoding, "replace")


def _with_parent(line: bytes, new_names: dict[bytes, bytes]) -> bytes:
    parent = line.removeprefix(_PARENT)
    return _PARENT + new_names[parent] if line.startswith(_PARENT) and parent in new_names else line
