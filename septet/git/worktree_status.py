"""How a worktree stood against its HEAD at a snapshot: what git said then need not be asked again."""

from collections.abc import Iterator
from typing import Final

import msgspec

from septet.git.changes import StatusEntry
from septet.git.place import Place
from septet.system.durable import whole_body, with_checksum, write_in_place

_FILE: Final = "standing"


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
    write_in_place(place.records / _FILE, with_checksum(_ENCODER.encode(_Note(snapshot, status))))


def load_worktree_status(place: Place, snapshot: str, head_sha: str) -> WorktreeStatus | None:
    """Return how the worktree stood at a snapshot; `None` where that is not known, or HEAD was another."""
    try:
        body = whole_body((place.records / _FILE).read_bytes())
        note = _DECODER.decode(body) if body is not None else None
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    if note is None:
        return None
    return note.standing if note.snapshot == snapshot and note.standing.head_sha == head_sha else None
