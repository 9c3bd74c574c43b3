"""How long things are kept, what a pass tells, and the clocks that it trusts."""

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
"""Between two passes: after a longer one either the host was off, or its clock has jumped."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How long a host keeps things: days after the work order closed."""

    workspaces_days: float
    runs_days: float
    snapshots_days: float
    mirrors_days: float
    ignored_limit_bytes: int
    """What all ignored files together may take in the snapshot that comes before a removal."""
    forgotten_days: float = 2.0
    """Until what no snapshot needs any more is dropped from the vault: one may be under way that does."""
    drop_ignored: bool = False
    """A person says that ignored files over the limit may go with their workspace."""


@dataclass(frozen=True, slots=True)
class Owner:
    """What a workspace belongs to, a work order or a pipeline, as the server describes it."""

    status: Literal["running", "closed", "unknown"]
    closed_at: datetime | None = None


FindOwner = Callable[[str], Owner]
"""Finds the owner of a workspace by its id."""


class SweptItem(Wire):
    """An item that was removed, or that was due and had to stay."""

    kind: SweptKind
    name: str
    why: str = ""
    """Why it had to stay."""
    snapshot: str | None = None
    """Where a removed workspace's last state is."""
    size_bytes: int | None = None
    """As its last snapshot recorded it; nothing is walked to find it out."""


class SweepReport(Wire):
    """What one pass did; lists are cut at a hundred."""

    host: str = ""
    removed: tuple[SweptItem, ...] = ()
    refused: tuple[SweptItem, ...] = ()
    """What was due and had to stay, each with the reason."""
    removed_count: int = 0
    refused_count: int = 0
    kept_count: int = 0
    """What was not due."""
    note: str = ""
    """Why the pass did less than all."""


def pipeline_of(place_id: str) -> str | None:
    """Return the pipeline that a workspace belongs to if it is a lane; `None` where its name is none of a lane."""
    match = _LANE.fullmatch(place_id)
    return match[1] if match else None


def combine_owners(own: Owner, pipeline: Owner) -> Owner:
    """Return the owner of what may be a work order's workspace or a pipeline's lane: closed when both are."""
    owners = (own, pipeline)
    if any(each.status == "running" for each in owners):
        return Owner("running")
    ends = [each.closed_at for each in owners if each.closed_at is not None]
    is_closed = any(each.status == "closed" for each in owners)
    return Owner("closed" if is_closed else "unknown", max(ends, default=None))


def distrust(last_pass: datetime | None, now: datetime, server_now: datetime) -> str:
    """Return why nothing may be removed in this pass, for ages count only by clocks that agree; else nothing.

    A clock that jumps makes everything old at once. Then the next pass is the first that removes.

    Args:
        last_pass: When the pass before this one began, by this host's clock; `None` before the first.
        now: This host's clock.
        server_now: The Temporal server's clock.
    """
    if abs(now - server_now) > _CLOCKS_APART:
        return f"This host's clock says {now:%Y-%m-%d %H:%M}, the server's {server_now:%Y-%m-%d %H:%M}."
    if last_pass is None:
        return "This is the first pass on this host."
    if now < last_pass - _CLOCKS_APART or now - last_pass > _LONGEST_PAUSE:
        return f"The last pass was {last_pass:%Y-%m-%d %H:%M}: the host was off, or its clock has jumped."
    return ""


def is_over(since: datetime, days: float, now: datetime) -> bool:
    """Say whether so many days have passed."""
    return now - since >= timedelta(days=days)
