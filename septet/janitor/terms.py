"""The retention times, the report of a pass, and the check of the clocks."""

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
"""The longest pause between two passes; after a longer pause, the host was off, or its clock has jumped."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The retention times of a host, in days after the end of the work order."""

    workspaces_days: float
    runs_days: float
    snapshots_days: float
    mirrors_days: float
    ignored_limit_bytes: int
    """The most bytes of ignored files in the snapshot before a removal."""
    forgotten_days: float = 2.0
    """The days until the vault drops unneeded objects, because an unfinished snapshot may need new objects."""
    drop_ignored: bool = False
    """Whether a person allows the loss of ignored files over the limit with their workspace."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a workspace, a work order or a pipeline, as the server describes it."""

    status: Literal["running", "closed", "unknown"]
    closed_at: datetime | None = None


FindOwner = Callable[[str], Owner]
"""A function that returns the owner of a workspace, by the workspace's id."""


class SweptItem(Wire):
    """An item that was removed, or that was due and could not be removed."""

    kind: SweptKind
    name: str
    why: str = ""
    """The reason why the item could not be removed; empty for a removed item."""
    snapshot: str | None = None
    """The snapshot with a removed workspace's last state."""
    size_bytes: int | None = None
    """The size in the item's last snapshot, which is known without counting files."""


class SweepReport(Wire):
    """The result of one pass; each list has at most a hundred items."""

    host: str = ""
    removed: tuple[SweptItem, ...] = ()
    refused: tuple[SweptItem, ...] = ()
    """The items that were due and could not be removed, each with the reason."""
    removed_count: int = 0
    refused_count: int = 0
    kept_count: int = 0
    """The number of items that were not due."""
    note: str = ""
    """The reason why the pass is incomplete."""


def pipeline_of(place_id: str) -> str | None:
    """Return the pipeline of a lane's workspace; `None` if the name is not a lane's."""
    match = _LANE.fullmatch(place_id)
    return match[1] if match else None


def combine_owners(own: Owner, pipeline: Owner) -> Owner:
    """Return both owners combined: running if either owner runs, or else closed if either owner is closed."""
    owners = (own, pipeline)
    if any(each.status == "running" for each in owners):
        return Owner("running")
    ends = [each.closed_at for each in owners if each.closed_at is not None]
    is_closed = any(each.status == "closed" for each in owners)
    return Owner("closed" if is_closed else "unknown", max(ends, default=None))


def distrust(last_pass: datetime | None, now: datetime, server_now: datetime) -> str:
    """Return why this pass may remove nothing, if the clocks do not agree; empty if the pass may remove files.

    If the clock jumps, all files seem old at once. Files are then removed by the next pass at the earliest.

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
