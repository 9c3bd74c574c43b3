"""The passes of intakes and the commands in comments that were recorded replay under this version."""

from pathlib import Path

import pytest
from fakes.intake_histories import INTAKES, OrderOfIntake
from fakes.recorded import name_of, replay

from workflows.intake.comment import CommentCommandWorkflow
from workflows.intake.intake import Intake

ROOT = Path(__file__).parent / "intake"
HISTORIES = sorted(ROOT.glob("*/*.json"))


@pytest.mark.parametrize("path", HISTORIES, ids=name_of)
async def test_every_recorded_intake_replays(path: Path) -> None:
    """What an earlier version began goes on under this one."""
    await replay(path, [Intake, CommentCommandWorkflow, OrderOfIntake])


def test_every_way_of_an_intake_is_recorded() -> None:
    """Each way has its history, in its version's folder; `make histories` records what is missing."""
    assert sorted(ROOT.rglob("*.json")) == HISTORIES
    assert set(INTAKES) <= {path.stem for path in HISTORIES}
