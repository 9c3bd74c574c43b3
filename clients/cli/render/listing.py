"""Work orders as a list: one a line, with their age."""

import sys
from typing import Final

from rich.table import Table
from rich.text import Text

from clients.cli.render.ages import age_of
from clients.cli.render.work_order import GAP, STYLE_OF, console, cut_to_line, issue_of, status_of
from septet.contracts.replies import TasksReply
from septet.contracts.task import Task
from septet.system.preview import printable

_HEADINGS: Final = ("id", "state", "age", "agent", "issue", "title")
_TITLE: Final = 200


def show_list(answer: TasksReply, nobody: str, *, is_filtered: bool) -> None:
    """Print work orders, one a line; in a pipe with tabs between the columns.

    Args:
        answer: The work orders.
        nobody: That nobody works, for a terminal; or nothing.
        is_filtered: Whether only some were asked for.
    """
    out = console()
    if not answer.tasks and not is_filtered:
        out.print(
            "There are no work orders yet. Start one: septet run --title 'What is wrong' --wait", soft_wrap=True
        )
    elif not answer.tasks:
        out.print("There are no such work orders.")
    elif not out.is_terminal:
        for task in answer.tasks:
            sys.stdout.write("\t".join(printable(cell) for cell in _row(task)) + "\n")
    else:
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, GAP, 0, 0))
        for name in _HEADINGS:
            table.add_column(name, no_wrap=True, overflow="ellipsis", ratio=1 if name == "title" else None)
        for task in answer.tasks:
            identity, status, *cells = _row(task)
            style = STYLE_OF.get(status, "")
            table.add_row(Text(identity, style="bold"), Text(status, style=style), *map(Text, cells))
        out.print(table)
        if nobody:
            out.print(Text(nobody, style="yellow"), soft_wrap=True)
    if answer.next is not None:
        out.print(Text(f"There are more: add --after {answer.next}", style="dim"), soft_wrap=True)


def _row(task: Task) -> tuple[str, ...]:
    age, title = age_of(task.created_at), cut_to_line(task.title, _TITLE)
    return (task.id, status_of(task), age, task.assigned_agent or "", issue_of(task), title)
