"""The engine's own index of a worktree: the look of each folder at the last snapshot, and its objects.

git's index is not enough: it has no permission bits, no empty folder and no ignored file, and the agent can write
git's index. The ledger saves work and is never the only source: without a ledger, a snapshot reads every file.
"""

from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import Final

import msgspec

from septet.git.vault.survey import Look
from septet.system.durable import whole_body, with_checksum, write_atomically

VERSION: Final = 1
"""The version of new ledgers."""


class EntryKind(IntEnum):
    """The part of a snapshot that holds a name."""

    TRACKED = 0
    """A name in the base commit."""
    UNTRACKED = 1
    IGNORED = 2
    """A name that a `.gitignore` ignores, in a folder that is not ignored."""
    REFUSED = 3
    """A name that git refuses in trees, such as `.git`."""


class LedgerEntry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The object of one name."""

    mode: int
    """git's mode: 0o100644, 0o100755, 0o120000 or 0o40000."""
    sha: bytes
    """The object's id; empty if the name was left out."""
    kind: EntryKind


class Outside(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A name in a folder that git's trees do not hold, with everything below."""

    name: bytes
    entry: LedgerEntry
    usage: int
    """The bytes on disk of a file; 0 for a folder."""


class Missing(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A name whose content the snapshot does not hold."""

    name: bytes
    reason: str
    size: int
    """The size in bytes, as far as known."""


class Record(msgspec.Struct, array_like=True, frozen=True):
    """The record of one folder."""

    look: Look
    packed: bytes
    """Name → entry, packed; unpacked only if the folder differs."""
    tree: bytes
    """The id of the folder's tree object."""
    outside: tuple[Outside, ...] = ()
    odd: tuple[tuple[bytes, int], ...] = ()
    """Each name whose permission bits do not follow from git's mode, with its permission bits."""
    missing: tuple[Missing, ...] = ()
    usage: int = 0
    """The bytes on disk of the folder's own files."""
    size: int = 0
    """The bytes of the folder's own files that the snapshot holds."""

    def entries(self) -> dict[bytes, LedgerEntry]:
        """Return the entries by name."""
        return _ENTRIES_DECODER.decode(self.packed)


class Mark(msgspec.Struct, array_like=True, frozen=True):
    """The marks by which a worktree is equal to the base commit or changed."""

    essence: bytes
    """A digest over everything except the index and the files that git rewrites without a change."""
    index: bytes
    """The id of the blob of the agent's index; empty without an index."""


class Ledger(msgspec.Struct, array_like=True, frozen=True):
    """All folders of a worktree, as the snapshot `last` holds them."""

    version: int
    usual: Mapping[int, int]
    """git's mode → the most common permission bits at checkout."""
    base: Mark | None
    """The mark of the worktree right after checkout."""
    last: str
    """The snapshot's name."""
    commit: str
    folders: dict[bytes, Record]


_ENTRIES_DECODER: Final = msgspec.msgpack.Decoder(dict[bytes, LedgerEntry])
_DECODER: Final = msgspec.msgpack.Decoder(Ledger)
_ENCODER: Final = msgspec.msgpack.Encoder()


def pack_entries(entries: dict[bytes, LedgerEntry]) -> bytes:
    """Return the entries in the form of `Record.packed`."""
    return _ENCODER.encode(entries)


def load(path: Path) -> Ledger | None:
    """Return the ledger at `path`; `None` if the file is missing, torn or of another version."""
    try:
        ledger = _DECODER.decode(whole_body(path.read_bytes()) or b"")
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return ledger if ledger.version == VERSION else None


def save(path: Path, ledger: Ledger) -> None:
    """Replace the ledger at `path`. The file is not synced: `load` detects a torn ledger."""
    write_atomically(path, with_checksum(_ENCODER.encode(ledger)))
