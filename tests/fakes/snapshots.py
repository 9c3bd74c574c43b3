"""Snapshots of workspaces for tests."""

from septet.git.engine.place import Place
from septet.git.snapshots.take import seed, take
from septet.git.vault.facts import Snapshot, SnapshotKind, SnapshotOptions
from septet.git.vault.vault import prepare

LIMIT_BYTES = 1 << 20


def begin(place: Place, limit_bytes: int = LIMIT_BYTES) -> Snapshot:
    prepare(place)
    return seed(place, ignored_limit_bytes=limit_bytes)


def snapshot_of(
    place: Place, kind: SnapshotKind = "checkpoint", limit_bytes: int = LIMIT_BYTES, step: str | None = None
) -> Snapshot:
    """Take a snapshot, and fail if the snapshot is superfluous."""
    snapshot = take(place, kind, SnapshotOptions("a test", limit_bytes, step))
    assert snapshot is not None
    return snapshot
