"""A stuck work order is shown first and with its cause, on every client."""

import pytest
from rich.console import Console

from clients.cli.render import work_order
from clients.cli.render.watch import WatchLines, WatchPicture
from clients.page.rendering import text_of
from clients.page.standing import BoardView
from septet.contracts.amounts import BudgetWait
from septet.contracts.names import Stage, Status
from septet.contracts.replies import BoardReply, BoardSummary, WatchReply
from septet.contracts.task import UNCONFINED, Task

CAUSE = "The current build cannot go on: [TMPRL1100]. It goes on under another: `septet promote one`."
TASK = Task(id="wo-1", status=Status.RUNNING, stage=Stage.EXECUTING, stuck=CAUSE)
LOOK = WatchReply(task=TASK)
BOARD = BoardReply(
    stages={Stage.EXECUTING: (TASK,)},
    counts={Stage.EXECUTING: 1},
    summary=BoardSummary(total=1, in_progress=1, blocked=0, completed=0),
)


def test_a_stuck_work_order_is_shown_with_its_cause(capsys: pytest.CaptureFixture[str]) -> None:
    """`show` prints `stuck` as the status, and the cause on one line."""
    work_order.show_task(TASK)
    heading, line = capsys.readouterr().out.strip().splitlines()
    assert heading.split() == ["wo-1", "stuck"]
    assert line == f"stuck         {CAUSE}"


def test_a_watch_says_stuck_once() -> None:
    """The picture shows the cause in place of the agent's work, and the lines name it once."""
    out = Console(width=140, height=40, force_terminal=True, color_system=None)
    picture, lines = WatchPicture(), WatchLines()
    picture.take(LOOK)
    with out.capture() as shown:
        out.print(picture)
    assert f"stuck: {CAUSE}" in shown.get()
    assert f"stuck: {CAUSE}" in list(lines.new_lines(LOOK))
    assert list(lines.new_lines(LOOK)) == []


def test_the_page_says_stuck() -> None:
    """A work order's page and its card on the board show the whole cause."""
    assert "septet promote one" in text_of("_overview.html", look=LOOK)
    assert "septet promote one" in text_of("_board.html", board=BoardView(BOARD, {}))


def test_the_list_of_needs_has_the_whole_command_that_raises_a_budget() -> None:
    """The list of needs holds the whole command, after any length of text."""
    whose = "project/an-organization-with-a-long-name/and-a-repository-with-a-longer-one"
    spent = BudgetWait(
        scope=whose,
        limit="500usd/day",
        message=f"The budget of the project {whose} is used up: 500.12 USD of 500usd today.",
        remedy=f"Raise it: `septet budget raise {whose} 50usd`.",
    )
    task = TASK.model_copy(update={"stuck": "", "status": Status.WAITING, "budget": spent})
    board = BOARD.model_copy(update={"stages": {Stage.EXECUTING: (task,)}})
    needs, _, cards = text_of("_board.html", board=BoardView(board, {})).partition('<div class="board">')
    for part in (needs, cards):
        assert f"septet budget raise {whose} 50usd" in part


def test_a_work_order_without_a_sandbox_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """`show` explains on one line that the work order has no sandbox."""
    task = TASK.model_copy(update={"stuck": None, "unconfined": UNCONFINED["none"]})
    work_order.show_task(task)
    assert f"unconfined    {UNCONFINED['none']}" in capsys.readouterr().out.splitlines()
