"""The janitor's passes that were recorded replay under this version."""

from pathlib import Path

import pytest
from fakes.janitor_histories import PASSES
from fakes.recorded import name_of, replay

from workflows.board.janitor import Janitor

ROOT = Path(__file__).parent / "janitor"
HISTORIES = sorted(ROOT.glob("*/*.json"))


@pytest.mark.parametrize("path", HISTORIES, ids=name_of)
async def test_every_recorded_pass_replays(path: Path) -> None:
    """A pass that an earlier version began goes on under this one."""
    await replay(path, [Janitor])


def test_every_way_of_a_pass_is_recorded() -> None:
    """Each way that a pass can go has its history, in its version's folder; `make histories` records what is missing."""
    assert sorted(ROOT.rglob("*.json")) == HISTORIES
    assert set(PASSES) <= {path.stem for path in HISTORIES}
