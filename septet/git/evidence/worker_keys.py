"""Find this process's keys in work before its commit or push, and report where a key is, but not the key."""

from collections.abc import Iterable
from typing import BinaryIO, Final

from septet.contracts.facts import FileChange, KeyFinding
from septet.errors import EvidenceError
from septet.git.engine.objects import read_base_file
from septet.git.engine.place import Place
from septet.git.evidence.added_lines import CommitPatch
from septet.git.worktree.inside import open_inside
from septet.system.masking import MASK, hidden_values, longest_form_bytes, mask_bytes
from septet.system.processes import check_halt
from septet.system.text import cut

_PART_BYTES: Final = 16 * 1024 * 1024
_SHOWN: Final = 5
_WORKERS: Final = "worker-key"
"""The rule's name in findings about keys of the worker."""


class FindingsError(EvidenceError):
    """The work holds what waits for a person's word."""

    def __init__(self, message: str, findings: tuple[KeyFinding, ...]) -> None:
        """Create the error; `message` is for the agent, and a person decides on the findings."""
        self.findings = findings
        super().__init__(message)


class KeysFoundError(FindingsError):
    """The work holds a key of the worker."""


def refuse_keys_in_files(place: Place, changes: Iterable[FileChange]) -> None:
    """Refuse changed files with more of this process's keys than they have in the base commit.

    git is started only for a file that contains a key.

    Raises:
        KeysFoundError: A file contains more keys; the message names files and lines.
        OSError: A file cannot be read to its end.
    """
    if not hidden_values():
        return
    found = []
    for change in changes:
        with open_inside(place.worktree, change.path) as file:
            count, line = _count_in(file) if file is not None else (0, 0)
        if count and count > _count(read_base_file(place, change.path) or b""):
            found.append(KeyFinding(path=cut(change.path, 200), line=line, rule=_WORKERS))
    if found:
        named = ", ".join(f"{finding.path} line {finding.line}" for finding in found[:_SHOWN])
        message = f"A key of the worker is in {named}: take it out, it must not be committed."
        raise KeysFoundError(message, tuple(found[:_SHOWN]))


def refuse_keys_in_commits(patches: Iterable[CommitPatch]) -> None:
    """Refuse commits that add a key to header, message or files, even if a later commit removes the key.

    Raises:
        KeysFoundError: A commit adds a key; the message names the commit.
    """
    if not hidden_values():
        return
    for each in patches:
        brought = (line.removeprefix(b"+") for line in each.patch.split(b"\n") if not line.startswith(b"-"))
        if _count(b"\n".join((each.head, each.message, *brought))):
            short = each.commit[:12]
            finding = KeyFinding(path="(the commit)", line=1, rule=_WORKERS, commit=short)
            message = f"Commit {short} holds a key of the worker."
            message = f"{message} Recreate the branch's commits without it: it must not be pushed."
            raise KeysFoundError(message, (finding,))


def _count_in(file: BinaryIO) -> tuple[int, int]:
    """Return how many keys a file has, and the line of the first one; two zeros if it has none.

    The file is read in overlapping parts, so that no key is missed.
    """
    count = first_line = newlines = 0
    before, overlap_bytes = b"", longest_form_bytes() - 1
    while part := file.read(_PART_BYTES):
        check_halt()
        content = before + part
        found = _count(content) - _count(before)
        if found and not count:
            # of a key of many lines, the first line
            pairs = zip(content.split(b"\n"), mask_bytes(content).split(b"\n"), strict=False)
            changed = (number for number, (line, masked) in enumerate(pairs, 1) if line != masked)
            first_line = newlines + next(changed, 1)
        count += found
        before = content[max(0, len(content) - overlap_bytes) :]
        newlines += content.count(b"\n") - before.count(b"\n")
    return count, first_line


def _count(content: bytes) -> int:
    marks = content.count(MASK.encode())
    return mask_bytes(content).count(MASK.encode()) - marks
