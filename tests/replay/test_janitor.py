"""The janitor's passes that were recorded replay under this version."""

from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer

from workflows.janitor import Janitor

HISTORIES = sorted((Path(__file__).parent / "janitor").glob("*.json"))


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_every_recorded_pass_replays(path: Path) -> None:
    """A pass that an earlier version began goes on under this one."""
    history = WorkflowHistory.from_json("septet-janitor-host", path.read_text(encoding="utf-8"))
    await Replayer(workflows=[Janitor], data_converter=pydantic_data_converter).replay_workflow(history)


def test_a_pass_is_recorded() -> None:
    """There is something to replay."""
    assert HISTORIES
