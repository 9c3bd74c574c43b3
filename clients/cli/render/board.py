"""Print the board, once or after each change; print lists of work orders."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from datetime import timedelta
from functools import partial
from typing import Final

from rich.console import Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from clients.cli.render.tables import GAP, age_of, table_of
from clients.cli.render.work_order import LONGEST_CELL, STYLE_OF, cut_to_line, issue_of, notes_on, status_of
from clients.cli.terminal.console import console
from clients.cli.terminal.output import notify, print_json, wrap
from clients.cli.terminal.reply import CommandReply
from clients.operations.absence import Absence, outlast
from clients.operations.operations import Operations
from septet.contracts.names import Stage
from septet.contracts.replies import BoardReply, TasksReply
from septet.contracts.task import Task
from septet.system.masking import printable

_STATUS = 3
_GIVES: Final = ((5, 24), (2, 12), (1, 8), (4, 0), (2, 0), (1, 0), (5, 0))
"""The columns that shrink, in order, with their least widths: reason, title, issue, agent, pull request. Id and
status never shrink."""
_LOOK_SHARE: Final = 5
"""The least pause between reads, as a multiple of the last read's duration: a large board is slow to read."""


async def follow_board(
    operations: Operations, project: str | None, *, as_json: bool, closed_within: timedelta | None
) -> CommandReply:
    """Show the board now and after each change, until Ctrl-C."""
    out = console()
    absence = Absence("the board", watch="septet board --follow")
    looks = partial(_boards, operations, project, closed_within)
    if out.is_terminal and not as_json:
        view: RenderableType = ""

        def paint(notes: str) -> None:
            above = [Text(wrap(notes, out.width), style="yellow")] if notes else []
            live.update(Group(*above, view), refresh=True)

        with Live(console=out, screen=True, auto_refresh=False) as live:
            async for board, nobody in outlast(looks, absence, paint):
                view = board_view(board)
                paint(_notes_on(board, nobody))
    async for board, nobody in outlast(looks, absence, notify):
        if as_json:
            print_json(board.model_dump(mode="json"))
        else:
            show_board(board, nobody)
            out.print()
    return CommandReply(is_printed=True)


def show_board(board: BoardReply, nobody: str = "") -> None:
    """Print the notice `nobody` on missing workers, and the board's stages with counts and work orders."""
    out = console()
    if notes := _notes_on(board, nobody):
        out.print(Text(wrap(notes, out.width if out.is_terminal else 0), style="yellow"), soft_wrap=True)
    if out.is_terminal:
        out.print(board_view(board))
    for stage, tasks in board.stages.items() if not out.is_terminal else ():
        out.print(_stage_heading(board, stage))
        for task in tasks:
            parts = (*_row(task), _outcome(task, task.pr_url or ""))
            out.print(Text("  " + "  ".join(printable(part) for part in parts if part)), soft_wrap=True)
    if board.next is not None:
        out.print(Text(f"There are more: add --after {board.next}", style="dim"), soft_wrap=True)


def board_view(board: BoardReply) -> RenderableType:
    """Return the board in the terminal's width; titles are cut, and pull requests are links with short names."""
    parts: list[RenderableType] = []
    for stage, tasks in board.stages.items():
        parts.append(_stage_heading(board, stage))
        if tasks:
            table = table_of([_cells(task) for task in tasks], console().width - GAP, _GIVES)
            parts.append(Padding(table, (0, 0, 0, GAP)))
        if (more := board.counts.get(stage, 0) - len(tasks)) > 0:
            how = ": septet board --all" if stage is Stage.DONE else ""
            parts.append(Text(f"  and {more:,} more{how}", style="dim"))
    return Group(*parts)


def _notes_on(board: BoardReply, nobody: str) -> str:
    return notes_on((task for tasks in board.stages.values() for task in tasks), nobody)


def _stage_heading(board: BoardReply, stage: Stage) -> Text:
    count = max(board.counts.get(stage, 0), len(board.stages[stage]))
    return Text.assemble((stage.value, "bold"), f" ({count:,})")


def _cells(task: Task) -> list[Text]:
    cells = [Text(cut_to_line(cell, LONGEST_CELL)) for cell in _row(task)]
    cells[_STATUS].stylize(STYLE_OF.get(task.word, ""))
    pull = "/".join(task.pr_url.rstrip("/").split("/")[-2:]) if task.pr_url else ""  # such as `pull/7`
    link = f"link {task.pr_url}" if task.pr_url else ""
    return [*cells, Text(cut_to_line(_outcome(task, pull), LONGEST_CELL), style=link)]


def _row(task: Task) -> tuple[str, ...]:
    return (task.id, issue_of(task), task.title, task.word, task.assigned_agent or "")


def _outcome(task: Task, pull_request: str) -> str:
    """Return `pull_request` or, if it is empty, the task's error; both if the work order is blocked."""
    if task.error is None or (pull_request and task.word != "blocked"):
        return pull_request
    reason = next(iter(task.error.message.splitlines()), "").rstrip(":")
    return "  ".join(filter(None, (pull_request, reason)))


async def _boards(
    operations: Operations, project: str | None, closed_within: timedelta | None
) -> AsyncGenerator[tuple[BoardReply, str], None]:
    """Yield the board and the notice on missing workers, now and after each change."""
    loop, last = asyncio.get_running_loop(), None
    while True:
        began = loop.time()
        board = await operations.board.page(project, closed_within=closed_within)
        if (look := (board, await operations.nobody_works())) != last:
            last = look
            yield look
        await asyncio.sleep(max(2.0, _LOOK_SHARE * (loop.time() - began)))


_LIST_GIVES: Final = ((5, 12), (4, 8), (3, 0), (5, 0), (4, 0), (2, 0))
"""The columns that shrink, in order, with least widths: title, issue, agent, age. Id and state never shrink."""


def show_list(answer: TasksReply, nobody: str, *, is_filtered: bool) -> None:
    """Print a line for each work order, with tabs in a pipe; a terminal also shows the notice `nobody`."""
    out = console()
    if not answer.tasks and not is_filtered:
        start = "Start one: septet run --title 'What is wrong' --wait"
        out.print(f"There are no work orders yet. {start}", soft_wrap=True)
    elif not answer.tasks:
        out.print("There are no such work orders.")
    elif not out.is_terminal:
        for task in answer.tasks:
            sys.stdout.write("\t".join(printable(cell) for cell in _list_row(task)) + "\n")
    else:
        rows = []
        for identity, status, *cells in map(_list_row, answer.tasks):
            styled = Text(identity, style="bold"), Text(status, style=STYLE_OF.get(status, ""))
            rows.append((*styled, *map(Text, cells)))
        out.print(table_of(rows, out.width, _LIST_GIVES, ("id", "state", "age", "agent", "issue", "title")))
        if nobody:
            out.print(Text(wrap(nobody, out.width), style="yellow"), soft_wrap=True)
    if answer.next is not None:
        out.print(Text(f"There are more: add --after {answer.next}", style="dim"), soft_wrap=True)


def _list_row(task: Task) -> tuple[str, ...]:
    age, title = age_of(task.created_at), cut_to_line(task.title, 200)
    return (task.id, status_of(task), age, task.assigned_agent or "", issue_of(task), title)
