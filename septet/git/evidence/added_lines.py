"""Find the lines that a work order adds, in staged changes or in commits that will be pushed."""

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from septet.errors import EvidenceError
from septet.git.engine.engine import Git
from septet.git.engine.place import Place
from septet.git.worktree.view import view_git
from septet.keys.scanner import HEAD, MESSAGE, AddedLine, read_added_lines
from septet.system.text import without_controls

_PATCH: Final = ("--patch", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-prefix")
_MIB: Final = 1024 * 1024
_MOST_BYTES: Final = 64 * _MIB
_LINE_BYTES: Final = 64
"""The most bytes that `git cat-file` prints for an object besides its content."""


@dataclass(frozen=True, slots=True)
class CommitPatch:
    """A commit's header, message and patch."""

    commit: str
    head: bytes
    """The commit's header as git stores it, without tree and parents: author, committer and others."""
    message: bytes
    """The message as git stores it, in any encoding."""
    patch: bytes
    """The difference from the first parent; for a binary file it has no lines."""


def added_lines(
    patches: Iterable[CommitPatch], staged: Git | None = None, head: str = ""
) -> tuple[AddedLine, ...]:
    """Return the lines that commits add, even lines that a later commit removes.

    After them come the lines that the index of `staged` adds to commit `head`.

    `staged` is Septet's view with an index of work to commit; `None` if only commits count.

    Raises:
        EvidenceError: The messages and patches have more than 64 MiB.
        GitError: git failed, or took too long.
    """
    lines, rest_bytes = list[AddedLine](), _MOST_BYTES
    for each in patches:
        rest_bytes -= len(each.patch)
        lines += (AddedLine(HEAD, *line, each.commit) for line in enumerate(each.head.split(b"\n"), 1))
        lines += read_added_lines(each.patch, each.message, each.commit)
    if staged is not None:
        options = ("--cached", "--no-renames", *_PATCH, head, "--")
        lines += read_added_lines(_whole(staged, "diff-index", *options, most_bytes=rest_bytes))
    return tuple(line for line in lines if line.path)


def refuse_controls(lines: Iterable[AddedLine]) -> None:
    """Refuse control characters, and characters that change the direction of text, in headers and messages.

    A carriage return at the end of a line is allowed.

    Raises:
        EvidenceError: A line has a refused character; the message names the commit.
    """
    for line in lines:
        text = line.content.removesuffix(b"\r").decode(errors="replace")
        if line.path in {HEAD, MESSAGE} and without_controls(text) != text:
            part = "message" if line.path == MESSAGE else "head"
            raise EvidenceError(
                f"The {part} of commit {line.commit[:12]} has control characters in line {line.number}, or "
                "some that change the direction of text.",
                remedy="Recreate the branch's commits with messages and names that have none.",
            )


def committed_patches(
    place: Place, since: str, sha: str, *published: str, context_lines: int = 0
) -> tuple[CommitPatch, ...]:
    """Return the commits after `since` up to `sha`, newest first, without `published` and their ancestors.

    Raises:
        EvidenceError: The messages and patches have more than 64 MiB.
        GitError: git failed, or took too long.
    """
    if since == sha:
        return ()
    git = view_git(place)
    mark = secrets.token_hex(16)  # no line holds it
    lines = f"--unified={context_lines}"
    options = ("--no-renames", "--diff-merges=first-parent", *_PATCH, lines, f"--format={mark}%H{mark}")
    parts = _whole(git, "log", *options, sha, "--not", since, *published, "--").split(mark.encode())[1:]
    stored = _stored_commits(git, parts[::2])
    return tuple(CommitPatch(*each, patch) for each, patch in zip(stored, parts[1::2], strict=True))


def _stored_commits(git: Git, names: list[bytes]) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield each commit's id, header and message as git stores them; `git log` would change the last two."""
    asked = b"".join(name + b"\n" for name in names)
    most_bytes = _MOST_BYTES + _LINE_BYTES * len(names)
    stored, at = _whole(git, "cat-file", "--batch", most_bytes=most_bytes, stdin=asked), 0
    for name in names:
        begin = stored.index(b"\n", at) + 1
        at = begin + int(stored[at:begin].split()[2]) + 1
        head, _, message = stored[begin : at - 1].partition(b"\n\n")
        own = (line for line in head.split(b"\n") if not line.startswith((b"tree ", b"parent ")))
        yield name.decode("ascii"), b"\n".join(own), message


def _whole(git: Git, *command: str, most_bytes: int = _MOST_BYTES, stdin: bytes = b"") -> bytes:
    """Return the whole output of a git command; refuse an output that is too long to be searched for keys."""
    output = git.run(*command, stdin=stdin, limit_bytes=most_bytes + 1)
    if len(output) > most_bytes:
        raise EvidenceError(
            f"The work adds more than {_MOST_BYTES // _MIB} MiB of text, and no more is searched for keys.",
            remedy="Leave generated files and data out of it: name them in .gitignore, and recreate the branch's "
            "commits without them.",
        )
    return output
