"""Work orders as people read them: rich tables that fit the terminal."""

from collections.abc import Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from septet.contracts.names import Stage
from septet.contracts.task import Task, TaskStep

_OTHER_COLUMNS = 62
"""Characters of a row beside the result."""
_STYLE_OF = {"completed": "green", "failed": "red", "cancelled": "yellow", "running": "cyan"}


def console() -> Console:
    """Return stdout as rich writes to it: colours only on a terminal, none with NO_COLOR."""
    return Console(highlight=False, soft_wrap=False)


def show_task(task: Task, waits: str | None = None) -> None:
    """Print a work order with its steps; what is to be copied stands on a line of its own, however long."""
    out = console()
    out.print(task_view(task))
    for line in [*_task_lines(task), *([Text(f"waits for     {waits}", style="yellow")] if waits else [])]:
        out.print(line, soft_wrap=True)


def show_steps(task: Task) -> None:
    """Print the steps alone."""
    console().print(steps_table(task.steps))


def task_view(task: Task, running: str = "") -> RenderableType:
    """Return a work order with its steps, as something that rich can draw again and again."""
    heading = Text.assemble(
        (task.id, "bold"),
        "  ",
        task.project,
        f" #{task.issue_number}" if task.issue_number else "",
        "  ",
        task.title,
        "  ",
        (task.status.value, _STYLE_OF.get(task.status.value, "")),
        overflow="ellipsis",
        no_wrap=True,
    )
    return Group(heading, steps_table(task.steps, running))


def _task_lines(task: Task) -> list[Text]:
    """Return what a work order came to: pull request, commit, rescues, error."""
    lines = []
    if task.pr_url:
        lines.append(Text.assemble("pull request  ", (task.pr_url, "bold green")))
    if task.commit_sha:
        lines.append(Text(f"commit        {task.commit_sha[:12]} on {task.branch_name}"))
    lines += [
        Text(
            f"rescue        {rescue.snapshot}: {rescue.reason}"
            + (f"\n              {rescue.patch}" if rescue.patch else "")
        )
        for rescue in task.rescues
    ]
    if task.error:
        lines.append(Text(f"{task.error.type}: {task.error.message}", style="red"))
        lines.append(Text(task.error.remedy))
    return lines


def steps_table(rows: Sequence[TaskStep], running: str = "") -> Table:
    """Return the steps as a table; the one that runs is its last row."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("", "step"):
        table.add_column(name, no_wrap=True)
    table.add_column("result", no_wrap=True, overflow="ellipsis", width=max(18, console().width - _OTHER_COLUMNS))
    for name in ("time", "tokens", "tries"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("read by", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row))
    if running:
        table.add_row("…", running, "[dim]running[/dim]")
    return table


def show_board(stages: Mapping[Stage, Sequence[Task]]) -> None:
    """Print the board: each stage with its count and its work orders."""
    out = console()
    for stage, tasks in stages.items():
        out.print(Text.assemble((stage.value, "bold"), f" ({len(tasks)})"))
        for task in tasks:
            issue = f" #{task.issue_number}" if task.issue_number else ""
            where = task.pr_url or ""
            out.print(Text(f"  {task.id}  {task.project}{issue}  {task.status.value}  {where}".rstrip()))


def _cells(row: TaskStep) -> tuple[str, ...]:
    mark = "[green]✓[/green]" if row.success else "[red]✗[/red]"
    found = (row.output if row.success else row.error_message) or ""
    tokens = row.usage.input_tokens + row.usage.output_tokens
    read_by = " ".join(part for part in (row.parsed_by, row.recovered_by) if part)
    return (
        mark,
        row.step,
        escape(" ".join(found.split())[:200]),
        f"{row.duration_seconds:.1f} s",
        f"{tokens:,}",
        str(row.attempts),
        read_by,
    )
