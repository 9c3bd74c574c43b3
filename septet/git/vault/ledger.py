"""The engine's own index of a worktree: how each folder looked at the last snapshot, and its objects.

git's index would not do: it knows no permission bits, no empty folder and no ignored file, and the agent can write
its own. It is a record to save work and never the only source: without it a snapshot reads every file again.
"""

from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import Final

import msgspec

from septet.git.vault.survey import Look
from septet.system.durable import whole_body, with_checksum, write_atomically

_VERSION: Final = 1


class EntryKind(IntEnum):
    """Where one name of a worktree belongs."""

    TRACKED = 0
    """In the base commit."""
    UNTRACKED = 1
    IGNORED = 2
    """By a `.gitignore`; not below another ignored folder."""
    REFUSED = 3
    """A name that git takes into no tree, such as `.git`."""


class LedgerEntry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The object of one name."""

    mode: int
    """git's mode: 0o100644, 0o100755, 0o120000 or 0o40000."""
    sha: bytes
    """The object's id; empty when the name was left out."""
    kind: EntryKind


class Outside(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A name that is in its folder and in no tree of git's, with all below it."""

    name: bytes
    entry: LedgerEntry
    usage: int
    """Bytes on disk, when it is a file."""


class Missing(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A name whose content the snapshot does not have."""

    name: bytes
    reason: str
    size: int
    """Bytes, as far as known."""


class Record(msgspec.Struct, array_like=True, frozen=True):
    """One folder."""

    look: Look
    packed: bytes
    """Name → entry; unpacked only where a folder differs."""
    tree: bytes
    """The id of the folder's tree object."""
    outside: tuple[Outside, ...] = ()
    odd: tuple[tuple[bytes, int], ...] = ()
    """Names whose permission bits do not follow from git's mode, and those bits."""
    missing: tuple[Missing, ...] = ()
    usage: int = 0
    """What the folder's own files take on disk, in bytes."""
    size: int = 0
    """The bytes of its own files that the snapshot holds."""

    def entries(self) -> dict[bytes, LedgerEntry]:
        """Return the entries by name."""
        return _ENTRIES_DECODER.decode(self.packed)


class Mark(msgspec.Struct, array_like=True, frozen=True):
    """What tells "as at the base commit" from "changed"."""

    essence: bytes
    """A digest over everything but the index and what git itself rewrites without a change."""
    index: bytes
    """The blob of the agent's index; empty without one."""


class Ledger(msgspec.Struct, array_like=True, frozen=True):
    """All folders of a worktree, as the snapshot `last` holds them."""

    version: int
    usual: Mapping[int, int]
    """git's mode → the permission bits that were the commonest at checkout."""
    base: Mark | None
    """How the worktree was right after checkout."""
    last: str
    """The snapshot's name."""
    commit: str
    folders: dict[bytes, Record]


_ENTRIES_DECODER: Final = msgspec.msgpack.Decoder(dict[bytes, LedgerEntry])
_DECODER: Final = msgspec.msgpack.Decoder(Ledger)
_ENCODER: Final = msgspec.msgpack.Encoder()


def pack_entries(entries: dict[bytes, LedgerEntry]) -> bytes:
    """Return the entries as `Record.packed` holds them."""
    return _ENCODER.encode(entries)


def new_ledger(
    usual: Mapping[int, int], base: Mark | None, last: str, commit: str, folders: dict[bytes, Record]
) -> Ledger:
    """Return a ledger of this version."""
    return Ledger(_VERSION, usual, base, last, commit, folders)


def load(path: Path) -> Ledger | None:
    """Return the ledger at `path`; `None` when there is none, or one that is torn or of another version."""
    try:
        body = whole_body(path.read_bytes())
    except FileNotFoundError:
        return None
    if body is None:
        return None
    try:
        ledger = _DECODER.decode(body)
    except msgspec.DecodeError:
        return None
    return ledger if ledger.version == _VERSION else None


def save(path: Path, ledger: Ledger) -> None:
    """Replace the ledger at `path`. It is not forced to disk: a torn one is noticed and made anew."""
    write_atomically(path, with_checksum(_ENCODER.encode(ledger)))
