"""Boards and watches over pull requests that were recorded replay under this version."""

from pathlib import Path

import pytest
from fakes.board_histories import BOARDS, WATCHES
from fakes.recorded import name_of, replay

from workflows.board.board import Board
from workflows.pull_request.pull_request import PullRequestWorkflow

HERE = Path(__file__).parent
BOARD_HISTORIES = sorted((HERE / "board").glob("*/*.json"))
WATCH_HISTORIES = sorted((HERE / "pull_request").glob("*/*.json"))


@pytest.mark.parametrize("path", [*BOARD_HISTORIES, *WATCH_HISTORIES], ids=name_of)
async def test_every_recorded_board_and_watch_replays(path: Path) -> None:
    """What an earlier version began goes on under this one."""
    await replay(path, [Board, PullRequestWorkflow])


def test_every_way_is_recorded() -> None:
    """Each way of a board and of a watch has its history, in its version's folder."""
    assert set(BOARDS) <= {path.stem for path in BOARD_HISTORIES}
    assert set(WATCHES) <= {path.stem for path in WATCH_HISTORIES}
