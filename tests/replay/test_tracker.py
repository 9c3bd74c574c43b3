"""The sessions of trackers and the replies in them that were recorded replay under this version."""

from pathlib import Path

import pytest
from fakes.recorded import name_of, replay
from fakes.tracker_histories import TRACKED, OrderOfTracker

from workflows.intake.tracker_session import TrackerPrompt, TrackerReport, TrackerSession

ROOT = Path(__file__).parent / "tracker"
HISTORIES = sorted(ROOT.glob("*/*.json"))


@pytest.mark.parametrize("path", HISTORIES, ids=name_of)
async def test_every_recorded_session_replays(path: Path) -> None:
    """What an earlier version began goes on under this one."""
    await replay(path, [TrackerSession, TrackerPrompt, TrackerReport, OrderOfTracker])


def test_every_way_of_a_session_is_recorded() -> None:
    """Each way has its history, in its version's folder; `make histories` records what is missing."""
    assert sorted(ROOT.rglob("*.json")) == HISTORIES
    assert set(TRACKED) <= {path.stem for path in HISTORIES}
