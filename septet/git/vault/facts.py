"""What Septet records of a snapshot: its facts, in the commit's message, and its ledger of the worktree's files.

The ledger is Septet's own index. git's index is not enough: it has no permission bits, no empty folder and no
ignored file, and the agent can write it. The ledger only saves work: without it, a snapshot reads every file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Final, Literal

import msgspec

from septet.git.vault.survey import Look
from septet.system.durable import whole_body, with_checksum, write_atomically

SnapshotKind = Literal["base", "checkpoint", "rescue"]
"""`base`: after the checkout; `checkpoint`: after a step; `rescue`: before work could be lost."""

_SHOWN_LINES: Final = 200


class LeftOut(msgspec.Struct, frozen=True):
    """A path of the worktree that the snapshot does not contain."""

    path: str
    r"""The path in the worktree; bytes that are not UTF-8 are shown as `\xNN`."""
    reason: str
    size_bytes: int
    """The size in bytes, as far as it was counted."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A snapshot: the complete state of a workspace, as a commit in the vault."""

    name: str = ""
    """`<work order>/<number>-<kind>`; sorted by name, a work order's snapshots are sorted by age."""
    commit: str = ""
    content: str = ""
    """The id of the commit's tree; equal for equal files, modes, index and git state."""
    tree: str
    """The id of a tree with the worktree's tracked and untracked files, as raw bytes."""
    index: str
    """The id of the blob with the agent's index; empty if there is none."""
    essence: str
    """A digest of everything except the index and the files that git rewrites by itself."""
    kind: SnapshotKind
    reason: str
    step: str | None = None
    taken_at: str
    """The time of the snapshot: ISO 8601, UTC."""
    base_sha: str
    size_bytes: int
    """The size of the restored files, in bytes."""
    left_out: tuple[LeftOut, ...] = ()
    """The paths that the snapshot does not contain, at most some hundreds; see `shorten`."""

    @property
    def order_id(self) -> str:
        """The id of the work order."""
        return self.name.rpartition("/")[0]

    def message(self) -> bytes:
        """Return the commit's message: a line for people, and a line of JSON with all fields."""
        where = f" at {self.step}" if self.step else ""
        subject = " ".join(f"{self.kind}{where}: {self.reason}".split())[:100]
        return subject.encode() + b"\n\n" + msgspec.json.encode(self) + b"\n"


@dataclass(frozen=True, slots=True)
class SnapshotOptions:
    """Why a snapshot is taken, and its limits."""

    reason: str
    """The reason, in a few words."""
    ignored_limit_bytes: int
    """The most bytes of all ignored files; beyond that, the largest ones are left out."""
    step: str | None = None
    equal_to: Snapshot | None = None
    """An earlier snapshot; if the workspace still equals it, no new one is taken."""


def shorten(items: Iterable[LeftOut]) -> tuple[LeftOut, ...]:
    """Return some hundreds of items, and one item with the number and the total size of all others."""
    everything = tuple(items)
    head, tail = everything[:_SHOWN_LINES], everything[_SHOWN_LINES:]
    if not tail:
        return head
    rest = LeftOut(f"… and {len(tail)} more", "the list is cut here", sum(item.size_bytes for item in tail))
    return (*head, rest)


VERSION: Final = 1
"""The version of the format of new ledgers."""


FILE: Final = 0o100644
PROGRAM: Final = 0o100755
LINK: Final = 0o120000
FOLDER: Final = 0o040000
"""git's modes of files, programs, links and folders."""


class EntryKind(IntEnum):
    """How git treats a file or folder, which decides in which part of the snapshot it is."""

    TRACKED = 0
    """A file or folder that the base commit has."""
    UNTRACKED = 1
    IGNORED = 2
    """A file or folder that a `.gitignore` ignores, in a folder that is not ignored itself."""
    REFUSED = 3
    """A file or folder whose name git refuses in trees, such as `.git`."""


class LedgerEntry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A ledger's entry for one file or folder: its mode, its git object and its kind."""

    mode: int
    """git's mode: 0o100644, 0o100755, 0o120000 or 0o40000."""
    sha: bytes
    """The object's id; empty for a file or folder that was left out."""
    kind: EntryKind


class Outside(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An ignored or refused file or folder (see `EntryKind`); a folder stands for everything below it too."""

    name: bytes
    entry: LedgerEntry
    usage: int
    """The bytes of a file on disk; 0 for a folder."""


class Missing(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A ledger's note on a file or folder whose content the snapshot lacks."""

    name: bytes
    reason: str
    size: int
    """The size in bytes, or the part of it that was counted."""


class Record(msgspec.Struct, array_like=True, frozen=True):
    """One folder at the last snapshot: the entries of its files and folders, its tree and its sizes."""

    look: Look
    packed: bytes
    """The entries by name, as MessagePack that is decoded only if the folder has changed."""
    tree: bytes
    """The id of the folder's tree object."""
    outside: tuple[Outside, ...] = ()
    odd: tuple[tuple[bytes, int], ...] = ()
    """The names of files and folders with unusual permission bits, and these bits."""
    missing: tuple[Missing, ...] = ()
    usage: int = 0
    """The bytes on disk of the folder's own files."""
    size: int = 0
    """The bytes of the folder's own files in the snapshot."""

    def entries(self) -> dict[bytes, LedgerEntry]:
        """Return the entries of the folder's files and folders, by name."""
        return _ENTRIES_DECODER.decode(self.packed)


class Mark(msgspec.Struct, array_like=True, frozen=True):
    """Digests of a worktree, to find out whether it has changed since the checkout."""

    essence: bytes
    """A digest of everything except the index and the files that git rewrites without a change of work."""
    index: bytes
    """The blob id of the agent's index; empty if there is none."""


class Ledger(msgspec.Struct, array_like=True, frozen=True):
    """The records of all of a worktree's folders at the snapshot `last`."""

    version: int
    usual: Mapping[int, int]
    """By git's mode, the most common permission bits at the checkout."""
    base: Mark | None
    """The digests of the worktree after the checkout."""
    last: str
    """The snapshot's name."""
    commit: str
    folders: dict[bytes, Record]


_ENTRIES_DECODER: Final = msgspec.msgpack.Decoder(dict[bytes, LedgerEntry])
_DECODER: Final = msgspec.msgpack.Decoder(Ledger)
_ENCODER: Final = msgspec.msgpack.Encoder()


def pack_entries(entries: dict[bytes, LedgerEntry]) -> bytes:
    """Return the entries as MessagePack, in the form of `Record.packed`."""
    return _ENCODER.encode(entries)


def load(path: Path) -> Ledger | None:
    """Return the ledger in a file; `None` if the file is missing, incomplete or of another version."""
    try:
        ledger = _DECODER.decode(whole_body(path.read_bytes()) or b"")
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return ledger if ledger.version == VERSION else None


def save(path: Path, ledger: Ledger) -> None:
    """Write the ledger to a file. The file is not synced to disk, because `load` detects an incomplete file."""
    write_atomically(path, with_checksum(_ENCODER.encode(ledger)))


def tree_content(entries: Mapping[bytes, LedgerEntry]) -> bytes:
    """Return the content of a tree object, sorted as git sorts: a folder's name counts with a `/` at its end."""
    order = sorted(entries, key=lambda name: name + b"/" if entries[name].mode == FOLDER else name)
    return b"".join(b"%o %s\0%s" % (entries[name].mode, name, entries[name].sha) for name in order)
