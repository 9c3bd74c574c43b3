"""How a worktree stood against its HEAD at a snapshot: what git said then need not be asked again."""

import zlib
from collections.abc import Iterator
from typing import Final

import msgspec

from septet.git.changes import StatusEntry
from septet.git.place import Place
from septet.system.durable import write_in_place

_FILE: Final = "standing"
_CHECKSUM_BYTES: Final = 4


class WorktreeStatus(msgspec.Struct, array_like=True, frozen=True):
    """What `git status` says, with nothing staged by the agent."""

    head_sha: str
    entries: tuple[StatusEntry, ...]
    """Everything that differs from that commit, nested repositories too."""

    def untracked_paths(self) -> frozenset[bytes]:
        """Return the files that git lists as untracked, and all folders above them: none of these is ignored."""
        files = [entry.path for entry in self.entries if entry.is_untracked and not entry.is_nested_repository]
        return frozenset(path for file in files for path in (file, *folders_above(file)))


def folders_above(path: bytes) -> Iterator[bytes]:
    """Give the folders that a path lies in, the innermost first, without the root."""
    while path := path.rpartition(b"/")[0]:
        yield path


class _Note(msgspec.Struct, array_like=True, frozen=True):
    """A worktree's status, and the snapshot of the same moment. The file and the field keep their first names."""

    snapshot: str
    standing: WorktreeStatus


_DECODER: Final = msgspec.msgpack.Decoder(_Note)
_ENCODER: Final = msgspec.msgpack.Encoder()


def save_worktree_status(place: Place, snapshot: str, status: WorktreeStatus) -> None:
    """Note how the worktree stood when the snapshot with commit `snapshot` was taken; a torn note is noticed."""
    body = _ENCODER.encode(_Note(snapshot, status))
    write_in_place(place.records / _FILE, zlib.crc32(body).to_bytes(_CHECKSUM_BYTES) + body)


def load_worktree_status(place: Place, snapshot: str, head_sha: str) -> WorktreeStatus | None:
    """Return how the worktree stood at a snapshot; `None` where that is not known, or HEAD was another."""
    try:
        content = (place.records / _FILE).read_bytes()
    except FileNotFoundError:
        return None
    checksum, body = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
    if zlib.crc32(body).to_bytes(_CHECKSUM_BYTES) != checksum:
        return None
    try:
        note = _DECODER.decode(body)
    except msgspec.DecodeError:
        return None
    return note.standing if note.snapshot == snapshot and note.standing.head_sha == head_sha else None
