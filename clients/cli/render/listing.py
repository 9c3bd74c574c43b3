"""Print a list of work orders: a line for each, with its age."""

import sys
from typing import Final

from rich.text import Text

from clients.cli.render.ages import age_of
from clients.cli.render.columns import table_of
from clients.cli.render.work_order import STYLE_OF, cut_to_line, issue_of, status_of
from clients.cli.terminal.console import console
from clients.cli.terminal.output import wrap
from septet.contracts.replies import TasksReply
from septet.contracts.task import Task
from septet.system.preview import printable

_HEADINGS: Final = ("id", "state", "age", "agent", "issue", "title")
_TITLE: Final = 200
_GIVES: Final = ((5, 12), (4, 8), (3, 0), (5, 0), (4, 0), (2, 0))
"""The columns that shrink, in order, with least widths: title, issue, age, agent. Id and state stay whole."""


def show_list(answer: TasksReply, nobody: str, *, is_filtered: bool) -> None:
    """Print each work order on a line, in a pipe with tabs between the columns.

    Args:
        answer: The work orders.
        nobody: The notice that no worker runs, which only a terminal shows; or an empty text.
        is_filtered: Whether the request had a filter.
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
        out.print(table_of([_cells(task) for task in answer.tasks], out.width, _GIVES, _HEADINGS))
        if nobody:
            out.print(Text(wrap(nobody, out.width), style="yellow"), soft_wrap=True)
    if answer.next is not None:
        out.print(Text(f"There are more: add --after {answer.next}", style="dim"), soft_wrap=True)


def _cells(task: Task) -> tuple[Text, ...]:
    identity, status, *cells = _row(task)
    return (Text(identity, style="bold"), Text(status, style=STYLE_OF.get(status, "")), *map(Text, cells))


def _row(task: Task) -> tuple[str, ...]:
    age, title = age_of(task.created_at), cut_to_line(task.title, _TITLE)
    return (task.id, status_of(task), age, task.assigned_agent or "", issue_of(task), title)
