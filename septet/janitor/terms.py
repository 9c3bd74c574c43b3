"""The retention times, the report on a pass of the janitor, and the check of the clocks before a pass."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from septet.contracts.wire import Wire

SweptKind = Literal["workspace", "runs", "snapshot", "mirror"]

_LANE: Final = re.compile(r"(.+)-(?:planner|executor-[1-9][0-9]*)")
_CLOCKS_APART: Final = timedelta(hours=1)
_LONGEST_PAUSE: Final = timedelta(days=2)
"""The longest usual pause between passes; after a longer pause, the host was off or its clock jumped."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The retention times of a host, in days."""

    workspaces_days: float
    runs_days: float
    snapshots_days: float
    mirrors_days: float
    ignored_limit_bytes: int
    """The most bytes of ignored files in the snapshot before a deletion."""
    forgotten_days: float = 2.0
    """The days after which the vault deletes unneeded objects: an unfinished snapshot may need younger ones."""
    drop_ignored: bool = False
    """Whether to delete a workspace even if ignored files over the limit are in no snapshot."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whether a workspace's work order or pipeline runs or is closed; `unknown` if the server has no record."""

    status: Literal["running", "closed", "unknown"]
    closed_at: datetime | None = None


FindOwner = Callable[[str], Owner]
"""A function that returns the owner of a workspace, by the workspace's id."""


class SweptItem(Wire):
    """An item that was deleted, or whose deletion failed."""

    kind: SweptKind
    name: str
    why: str = ""
    """Why the item could not be deleted; empty for a deleted item."""
    snapshot: str | None = None
    """The name of the snapshot with a removed workspace's last state."""
    size_bytes: int | None = None
    """The size of the snapshot, or of the workspace in its last snapshot."""


class SweepReport(Wire):
    """The result of one pass of the janitor; each list has at most a hundred items."""

    host: str = ""
    removed: tuple[SweptItem, ...] = ()
    refused: tuple[SweptItem, ...] = ()
    """The items that should have been deleted, each with the reason why it was not."""
    removed_count: int = 0
    refused_count: int = 0
    kept_count: int = 0
    """The number of items whose retention time is not over."""
    note: str = ""
    """The reason why the pass is incomplete; empty for a complete pass."""


def pipeline_of(place_id: str) -> str | None:
    """Return the pipeline's id in the id of a lane's workspace; `None` for any other workspace."""
    match = _LANE.fullmatch(place_id)
    return match[1] if match else None


def combine_owners(own: Owner, pipeline: Owner) -> Owner:
    """Return the state of two owners together: running if one runs, else closed if one is closed, else unknown."""
    owners = (own, pipeline)
    if any(each.status == "running" for each in owners):
        return Owner("running")
    ends = [each.closed_at for each in owners if each.closed_at is not None]
    is_closed = any(each.status == "closed" for each in owners)
    return Owner("closed" if is_closed else "unknown", max(ends, default=None))


def distrust(last_pass: datetime | None, now: datetime, server_now: datetime) -> str:
    """Return why this pass must delete nothing, because a clock may have jumped; empty if it may delete.

    After a jump of the clock, all files seem old. A later pass deletes what is really old.

    Args:
        last_pass: The start of the previous pass, by this host's clock; `None` before the first pass.
        now: The time of this host's clock.
        server_now: The time of the Temporal server's clock.
    """
    if abs(now - server_now) > _CLOCKS_APART:
        return f"This host's clock says {now:%Y-%m-%d %H:%M}, the server's {server_now:%Y-%m-%d %H:%M}."
    if last_pass is None:
        return "This is the first pass on this host."
    if now < last_pass - _CLOCKS_APART or now - last_pass > _LONGEST_PAUSE:
        return f"The last pass was {last_pass:%Y-%m-%d %H:%M}: the host was off, or its clock has jumped."
    return ""


def is_over(since: datetime, days: float, now: datetime) -> bool:
    """Return whether `days` have passed between `since` and `now`."""
    return now - since >= timedelta(days=days)
