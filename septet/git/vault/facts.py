"""What is known of a snapshot, stored in the message of its commit."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from septet.errors import SnapshotError

SnapshotKind = Literal["base", "checkpoint", "rescue"]
"""`base`: after the checkout; `checkpoint`: after a step; `rescue`: before work could be lost."""

REFS: Final = "refs/septet/"
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

    @property
    def ref(self) -> str:
        """The vault's ref for the snapshot's commit."""
        return ref_of(self.name)

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


def ref_of(name: str) -> str:
    """Return the ref of a snapshot, with dots encoded, because git refuses some names with dots."""
    return REFS + name.replace(".", "%2E")


def name_of(ref: str) -> str:
    """Return the name of the snapshot to which a ref belongs."""
    return ref.removeprefix(REFS).replace("%2E", ".")


def parse(ref: str, commit: str, content: bytes) -> Snapshot:
    """Return the snapshot from its ref, its commit's id and the commit's content.

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
    """Return some hundreds of items, and one item with the number and the total size of all others."""
    everything = tuple(items)
    head, tail = everything[:_SHOWN_LINES], everything[_SHOWN_LINES:]
    if not tail:
        return head
    rest = LeftOut(f"… and {len(tail)} more", "the list is cut here", sum(item.size_bytes for item in tail))
    return (*head, rest)
