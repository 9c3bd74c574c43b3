"""The ledger of a worktree: the names in each folder at the last snapshot, with their `lstat` numbers and objects.

git's index is not enough: it has no permission bits, no empty folders and no ignored files, and the agent can
write it. Without a ledger, a snapshot must read every file.
"""

from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import Final

import msgspec

from septet.git.vault.survey import Look
from septet.system.durable import whole_body, with_checksum, write_atomically

VERSION: Final = 1
"""The version of the format of new ledgers."""


class EntryKind(IntEnum):
    """The kind of a name, which decides in which part of the snapshot it is."""

    TRACKED = 0
    """A name that the base commit has."""
    UNTRACKED = 1
    IGNORED = 2
    """A name that a `.gitignore` ignores, in a folder that is not ignored itself."""
    REFUSED = 3
    """A name that git refuses in trees, such as `.git`."""


class LedgerEntry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The object that stands for one name in a snapshot."""

    mode: int
    """git's mode: 0o100644, 0o100755, 0o120000 or 0o40000."""
    sha: bytes
    """The object's id; empty for a name that was left out."""
    kind: EntryKind


class Outside(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A name outside of git's trees, which stands for everything below it too."""

    name: bytes
    entry: LedgerEntry
    usage: int
    """The bytes of a file on disk; 0 for a folder."""


class Missing(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A name whose content is not in the snapshot."""

    name: bytes
    reason: str
    size: int
    """The size in bytes, as far as it was counted."""


class Record(msgspec.Struct, array_like=True, frozen=True):
    """One folder at the last snapshot: its names, their objects, its tree and its sizes."""

    look: Look
    packed: bytes
    """The entries by name, as MessagePack that is decoded only if the folder has changed."""
    tree: bytes
    """The id of the folder's tree object."""
    outside: tuple[Outside, ...] = ()
    odd: tuple[tuple[bytes, int], ...] = ()
    """The names with other than the usual permission bits, and these bits."""
    missing: tuple[Missing, ...] = ()
    usage: int = 0
    """The bytes on disk of the folder's own files."""
    size: int = 0
    """The bytes of the folder's own files in the snapshot."""

    def entries(self) -> dict[bytes, LedgerEntry]:
        """Return the entries by name."""
        return _ENTRIES_DECODER.decode(self.packed)


class Mark(msgspec.Struct, array_like=True, frozen=True):
    """Digests of a worktree, by which a change since the base commit shows."""

    essence: bytes
    """A digest of everything except the index and the files that git rewrites by itself."""
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
    """Write the ledger to a file. The file is not synced to disk, because `load` detects an incomplete one."""
    write_atomically(path, with_checksum(_ENCODER.encode(ledger)))
