"""Pipelines that were recorded, and their work orders, replay under this version."""

from pathlib import Path

import pytest
from fakes.pipeline_histories import MEMBERS, PIPELINES
from fakes.recorded import name_of, replay

from workflows.pipeline import Pipeline
from workflows.work_order import WorkOrder

HISTORIES = sorted((Path(__file__).parent / "pipeline").glob("*/*.json"))


@pytest.mark.parametrize("path", HISTORIES, ids=name_of)
async def test_every_recorded_pipeline_replays(path: Path) -> None:
    """What an earlier version began goes on under this one."""
    await replay(path, [Pipeline, WorkOrder])


def test_every_way_of_a_pipeline_is_recorded() -> None:
    """Each way has its history, in its version's folder; `make histories` records what is missing."""
    assert {*PIPELINES, *MEMBERS} <= {path.stem for path in HISTORIES}
