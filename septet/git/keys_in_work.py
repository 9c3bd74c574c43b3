"""Keys of this process in what a work order is about to commit or to push: where they are, never what they are."""

from collections.abc import Iterable
from typing import Final

from septet.contracts.facts import FileChange, KeyFinding
from septet.errors import EvidenceError
from septet.git.evidence import read_base_file
from septet.git.inside import read_inside
from septet.git.place import Place
from septet.git.view import view_git
from septet.system.masking import MASK, hidden_values, mask_bytes
from septet.system.text import cut

_FILE_BYTES: Final = 16 * 1024 * 1024
_LOG_BYTES: Final = 64 * 1024 * 1024
_LOG_SECONDS: Final = 120.0
_PATCHES: Final = (
    "log", "--patch", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--diff-merges=first-parent",
    "--format=%x00%H%n%B",
)  # fmt: skip
"""A commit for each NUL: its name, its message, its lines. Of a binary file git shows none."""
_SHOWN: Final = 5
_PATH_LENGTH: Final = 200
_SHORT: Final = 12
_WORKERS: Final = "worker-key"
"""The rule of a finding that is a key of the worker's own."""


class KeysFoundError(EvidenceError):
    """The work holds a key, or what looks like one."""

    def __init__(self, message: str, findings: tuple[KeyFinding, ...]) -> None:
        """Say what the agent is told, and where a person finds it."""
        self.findings = findings
        super().__init__(message)


def refuse_keys_in_files(place: Place, changes: Iterable[FileChange]) -> None:
    """See that no changed file of the worktree holds more keys than it does in the base commit.

    Files are read as they lie there, the first 16 MiB of each, and git is asked of those that hold a key alone.

    Raises:
        KeysFoundError: One does; the message names files and lines.
    """
    if not hidden_values():
        return
    found = []
    for change in changes:
        content = read_inside(place.worktree, change.path, _FILE_BYTES) or b""
        count = _count(content)
        if count and count > _count(read_base_file(place, change.path) or b""):
            found.append(KeyFinding(path=cut(change.path, _PATH_LENGTH), line=_first_line(content), rule=_WORKERS))
    if found:
        named = ", ".join(f"{finding.path} line {finding.line}" for finding in found[:_SHOWN])
        message = f"A key of the worker is in {named}: take it out, it must not be committed."
        raise KeysFoundError(message, tuple(found[:_SHOWN]))


def refuse_keys_in_commits(place: Place, since: str, sha: str) -> None:
    """See that no commit after `since` brings a key, in message or lines, also where a later one removes it.

    The first 64 MiB of messages and lines are looked through, the newest first.

    Raises:
        KeysFoundError: One does; the message names the commit.
        GitError: git could not read them, or not in time.
    """
    if not hidden_values() or since == sha:
        return
    commits = f"{since}..{sha}"
    git = view_git(place)
    log = git.run(*_PATCHES, commits, "--", timeout_seconds=_LOG_SECONDS, limit_bytes=_LOG_BYTES)
    if mask_bytes(log) == log:
        return
    for commit in log.split(b"\0"):
        name, _, content = commit.partition(b"\n")
        brought = b"\n".join(line for line in content.split(b"\n") if not line.startswith(b"-"))
        if _count(brought):
            short = name[:_SHORT].decode(errors="replace")
            finding = KeyFinding(path="(the commit)", line=1, rule=_WORKERS, commit=short)
            message = f"Commit {short} holds a key of the worker."
            message = f"{message} Recreate the branch's commits without it: it must not be pushed."
            raise KeysFoundError(message, (finding,))


def _count(content: bytes) -> int:
    marks = content.count(MASK.encode())
    return mask_bytes(content).count(MASK.encode()) - marks


def _first_line(content: bytes) -> int:
    """Return the number of the first line that differs once it is masked; of a key of many lines the first."""
    pairs = zip(content.split(b"\n"), mask_bytes(content).split(b"\n"), strict=False)
    return next((number for number, (line, masked) in enumerate(pairs, 1) if line != masked), 1)
