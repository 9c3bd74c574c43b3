"""Septet's own index of a worktree: the names and figures in each folder at the last snapshot, and their objects.

git's index is not enough: it has no permission bits, no empty folder and no ignored file, and the agent can write
it. The ledger only saves work: without a ledger, a snapshot reads every file.
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
    """The kind of a name, which decides on the part of the snapshot that contains the name."""

    TRACKED = 0
    """A name in the base commit."""
    UNTRACKED = 1
    IGNORED = 2
    """A name that a `.gitignore` ignores, in a folder that is not ignored."""
    REFUSED = 3
    """A name that git refuses in trees, such as `.git`."""


class LedgerEntry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The object that a snapshot has for one name."""

    mode: int
    """git's mode: 0o100644, 0o100755, 0o120000 or 0o40000."""
    sha: bytes
    """The object's id; empty if the name was left out."""
    kind: EntryKind


class Outside(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A name that is outside git's trees, together with everything below the name."""

    name: bytes
    entry: LedgerEntry
    usage: int
    """The bytes on disk of a file; 0 for a folder."""


class Missing(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A name whose content the snapshot does not contain."""

    name: bytes
    reason: str
    size: int
    """The size in bytes, or the part of it that was counted."""


class Record(msgspec.Struct, array_like=True, frozen=True):
    """What the last snapshot recorded of one folder: its names, their objects, and the folder's tree and sizes."""

    look: Look
    packed: bytes
    """Name → entry, as bytes of MessagePack, which are decoded only if the folder has changed."""
    tree: bytes
    """The id of the folder's tree object."""
    outside: tuple[Outside, ...] = ()
    odd: tuple[tuple[bytes, int], ...] = ()
    """Each name whose permission bits are not the usual bits of its git mode, with its permission bits."""
    missing: tuple[Missing, ...] = ()
    usage: int = 0
    """The bytes on disk of the folder's own files."""
    size: int = 0
    """The bytes of the folder's own files that the snapshot contains."""

    def entries(self) -> dict[bytes, LedgerEntry]:
        """Return the entries by name."""
        return _ENTRIES_DECODER.decode(self.packed)


class Mark(msgspec.Struct, array_like=True, frozen=True):
    """Digests of a worktree, by which Septet finds out whether the worktree changed since the base commit."""

    essence: bytes
    """A digest of everything except the index and the files that git rewrites without a change of work."""
    index: bytes
    """The id of the blob of the agent's index; empty without an index."""


class Ledger(msgspec.Struct, array_like=True, frozen=True):
    """The records of all folders of a worktree at the snapshot `last`."""

    version: int
    usual: Mapping[int, int]
    """git's mode → the most common permission bits at checkout."""
    base: Mark | None
    """The digests of the worktree right after checkout."""
    last: str
    """The snapshot's name."""
    commit: str
    folders: dict[bytes, Record]


_ENTRIES_DECODER: Final = msgspec.msgpack.Decoder(dict[bytes, LedgerEntry])
_DECODER: Final = msgspec.msgpack.Decoder(Ledger)
_ENCODER: Final = msgspec.msgpack.Encoder()


def pack_entries(entries: dict[bytes, LedgerEntry]) -> bytes:
    """Return the entries as bytes of MessagePack, as in `Record.packed`."""
    return _ENCODER.encode(entries)


def load(path: Path) -> Ledger | None:
    """Return the ledger at `path`; `None` if the file is missing, incomplete or of another version."""
    try:
        ledger = _DECODER.decode(whole_body(path.read_bytes()) or b"")
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return ledger if ledger.version == VERSION else None


def save(path: Path, ledger: Ledger) -> None:
    """Replace the ledger at `path`. The file is not synced: `load` detects a torn ledger."""
    write_atomically(path, with_checksum(_ENCODER.encode(ledger)))
