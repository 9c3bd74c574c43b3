"""The facts about a snapshot, which are stored in the message of the snapshot's commit."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from septet.errors import SnapshotError

SnapshotKind = Literal["base", "checkpoint", "rescue"]
"""`base`: right after checkout; `checkpoint`: after a step; `rescue`: before a destructive change."""

REFS: Final = "refs/septet/"
_SHOWN_LINES: Final = 200


class LeftOut(msgspec.Struct, frozen=True):
    """A path of the worktree that the snapshot does not contain."""

    path: str
    """The path relative to the worktree's root; bytes that are not UTF-8 are shown as `\\xNN`."""
    reason: str
    size_bytes: int
    """The size in bytes, or the part of it that was counted."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A snapshot: the complete state of a workspace, as a commit in the vault."""

    name: str = ""
    """`<work order>/<number>-<kind>`; the names of a work order's snapshots sort by age."""
    commit: str = ""
    content: str = ""
    """The id of the commit's tree, which is equal for snapshots of the same files, modes, index and git state."""
    tree: str
    """The id of a tree of the worktree's tracked and untracked files alone, as raw bytes."""
    index: str
    """The id of the blob of the agent's index; empty without an index."""
    essence: str
    """A digest that ignores the index and the files that git rewrites by itself."""
    kind: SnapshotKind
    reason: str
    step: str | None = None
    taken_at: str
    """The time of the snapshot: ISO 8601, UTC."""
    base_sha: str
    size_bytes: int
    """The size of the restored files, in bytes."""
    left_out: tuple[LeftOut, ...] = ()
    """The paths that the snapshot does not contain, some hundreds at most; see `shorten`."""

    @property
    def order_id(self) -> str:
        """The id of the work order."""
        return self.name.rpartition("/")[0]

    @property
    def ref(self) -> str:
        """The vault's ref that points to the snapshot's commit."""
        return ref_of(self.name)

    def message(self) -> bytes:
        """Return the commit's message: a line for people, and all fields as a line of JSON."""
        where = f" at {self.step}" if self.step else ""
        subject = " ".join(f"{self.kind}{where}: {self.reason}".split())[:100]
        return subject.encode() + b"\n\n" + msgspec.json.encode(self) + b"\n"


@dataclass(frozen=True, slots=True)
class SnapshotOptions:
    """The reason for taking a snapshot, and its limits."""

    reason: str
    """The reason, in a few words."""
    ignored_limit_bytes: int
    """The most bytes on disk of all ignored files together; the largest files beyond this limit are left out."""
    step: str | None = None
    equal_to: Snapshot | None = None
    """A snapshot; if the workspace is still equal to it, no new snapshot is taken."""


def ref_of(name: str) -> str:
    """Return the ref of a snapshot; git refuses refs with `..` or with `.lock` at the end, so dots are encoded."""
    return REFS + name.replace(".", "%2E")


def name_of(ref: str) -> str:
    """Return the name of the snapshot to which a ref of the vault points."""
    return ref.removeprefix(REFS).replace("%2E", ".")


def parse(ref: str, commit: str, content: bytes) -> Snapshot:
    """Return the snapshot that a commit describes.

    Raises:
        SnapshotError: The commit is not a snapshot.
    """
    head, _, message = content.partition(b"\n\n")
    try:
        facts = msgspec.json.decode(message.partition(b"\n\n")[2], type=Snapshot)
    except msgspec.DecodeError as error:
        raise SnapshotError(f"{ref} is not a snapshot: {error}.") from error
    tree = head.partition(b"\n")[0].removeprefix(b"tree ").decode()
    return msgspec.structs.replace(facts, name=name_of(ref), commit=commit, content=tree)


def shorten(items: Iterable[LeftOut]) -> tuple[LeftOut, ...]:
    """Return some hundreds of items, and one more item with the number and total size of the rest, if any."""
    everything = tuple(items)
    head, tail = everything[:_SHOWN_LINES], everything[_SHOWN_LINES:]
    if not tail:
        return head
    rest = LeftOut(f"… and {len(tail)} more", "the list is cut here", sum(item.size_bytes for item in tail))
    return (*head, rest)
