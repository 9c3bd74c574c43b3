"""Rewrite the messages of an agent's commits to the form in which they may be published."""

from collections.abc import Callable
from typing import Final

from septet.git.engine.place import Place
from septet.git.worktree.dot_git import clear_locks, read_head, refuse_links
from septet.git.worktree.view import view_git

_SECONDS: Final = 120.0
_MOST_BYTES: Final = 64 * 1024 * 1024
_SIGNED: Final = b"gpgsig"
_PARENT: Final = b"parent "


def clean_messages(place: Place, since: tuple[str, ...], clean: Callable[[str], str]) -> str:
    """Rewrite the commits after `since` whose message `clean` changes, and return HEAD's commit.

    Trees, authors and times stay; a rewritten commit loses its signature. Files and index stay unchanged.

    Args:
        place: The work order's place.
        since: The commits whose histories stay.
        clean: Returns the form of a message for publication, without the newline at its end.

    Raises:
        WorkspaceError: `.git` is damaged.
        GitError: git failed, or the branch moved meanwhile.
    """
    dot_git = place.worktree / ".git"
    head = read_head(dot_git)
    if head.branch is None or head.sha in since:
        return head.sha
    git = view_git(place)
    commits = git.run(
        *("rev-list", "--topo-order", "--reverse", head.sha, "--not", *since, "--"),
        timeout_seconds=_SECONDS,
        limit_bytes=_MOST_BYTES,
    ).split()
    new_names: dict[bytes, bytes] = {}
    for commit in commits:
        stored = git.run("cat-file", "commit", commit.decode(), timeout_seconds=_SECONDS, limit_bytes=_MOST_BYTES)
        written = _new_commit(stored, new_names, clean)
        if written is not None:
            sha = git.run("hash-object", "-t", "commit", "-w", "--stdin", stdin=written)
            new_names[commit] = sha.strip()
    tip = new_names.get(head.sha.encode())
    if tip is None:
        return head.sha
    clear_locks(dot_git)
    refuse_links(dot_git, head.branch)
    git.run("update-ref", f"refs/heads/{head.branch}", tip.decode(), head.sha)
    return tip.decode()


def _new_commit(commit: bytes, new_names: dict[bytes, bytes], clean: Callable[[str], str]) -> bytes | None:
    """Return a commit with another message or other parents; `None` if it stays unchanged."""
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
        in_signature = line.startswith(_SIGNED) or (in_signature and line.startswith(b" "))
        kept += [] if in_signature else [line]
    return b"\n".join(kept) + b"\n\n" + f"{cleaned.strip() or '(no message)'}\n".encode(encoding, "replace")


def _with_parent(line: bytes, new_names: dict[bytes, bytes]) -> bytes:
    parent = line.removeprefix(_PARENT)
    return _PARENT + new_names[parent] if line.startswith(_PARENT) and parent in new_names else line
