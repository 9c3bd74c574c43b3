"""Print work orders, as tables that fit the terminal."""

import shlex
from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from clients.cli.render.logs import headline
from clients.cli.render.tables import GAP
from clients.cli.terminal.console import console
from clients.operations.under_way import StepUnderWay
from septet.contracts.names import LOCAL_PULL, Stage, Status
from septet.contracts.replies import RUNNING
from septet.contracts.task import Task, TaskStep
from septet.system.masking import printable
from septet.system.text import name_some

_HEADINGS = ("", "step", "result", "time", "tokens", "attempts", "note")
_RESULT = _HEADINGS.index("result")
_NOTE = _HEADINGS.index("note")
LEAST_TITLE = 12
_LEAST_RESULT = 12
"""The least width of the column of results, which shrinks first in a narrow terminal. If that is not enough,
the columns after it are omitted."""
LONGEST_CELL = 200
_NO_PLAN = "not known: no worker has answered"
_NAMED = 3
_RESCUES_SHOWN = 3
RECOVERIES = {
    "adopt": "outlived its worker", "read": "outlived its worker", "resume": "resumed",
    "rerun": "started again", "finalizer": "asked again",
}  # fmt: skip
"""The words for how a step recovered after its agent or worker stopped, or after an unreadable answer."""
STYLE_OF = {
    "completed": "green", "review": "green", "failed": "red", "stuck": "red", "cancelled": "yellow",
    "running": "cyan",
}  # fmt: skip


def show_task(task: Task, running: str = "", waits: str | None = None, *, with_error: bool = True) -> None:
    """Print a work order with its steps, its outcome, and what the work order waits for (`waits`)."""
    out = console()
    out.print(task_view(task, running))
    lines = end_lines(task, with_error=with_error)
    for line in [*lines, *([Text(printable(f"waits for     {waits}"), style="yellow")] if waits else [])]:
        out.print(line, soft_wrap=True)


def tokens_text(task: Task, tokens: int) -> str:
    """Return a number of tokens as text; the tokens of earlier tries follow in brackets."""
    earlier = f" ({task.earlier_tokens:,} in earlier tries)" if task.earlier_tokens else ""
    return f"{tokens:,}{earlier}"


def start_line(task: Task, verb: str) -> Text:
    """Return the line on a started or continued work order: its id, `verb` (like `started`), issue and title."""
    facts = "  ".join(part for part in (issue_of(task), cut_to_line(task.title, LONGEST_CELL)) if part)
    return Text.assemble((task.id, "bold"), f" {verb}", f": {facts}" if facts else "")


def show_start(out: Console, task: Task, verb: str) -> None:
    """Print the line on a started work order, and the commands that people type next."""
    out.print(start_line(task, verb), soft_wrap=True)
    show_start_commands(out, task)


def show_start_commands(out: Console, task: Task) -> None:
    """Print the commands that people type next about a started work order."""
    commands = {"watch": "watch it live", "show": "see where it is now", "cancel": "stop it and keep its work"}
    show_commands(out, [(f"septet {command} {task.id}", purpose) for command, purpose in commands.items()])


def show_estimate(out: Console, estimate: str) -> None:
    """Print an estimate, unless it is empty."""
    if estimate:
        out.print(Text(printable(estimate)), soft_wrap=True)


def show_commands(out: Console, commands: Sequence[tuple[str, str]]) -> None:
    """Print commands that people may type next, each with its purpose."""
    width = max((len(typed) for typed, _ in commands), default=0)
    longest = max((len(purpose) for _, purpose in commands), default=0)
    gap = "\n      " if out.is_terminal and width + longest + 2 * GAP > out.width else "  "
    for typed, purpose in commands:
        out.print(Text.assemble("  ", (f"{typed:<{width}}", "cyan"), f"{gap}{purpose}"), soft_wrap=True)


def next_commands(task: Task) -> list[tuple[str, str]]:
    """Return the commands, with their purposes, that people type next about a work order."""
    if task.stage is Stage.COLLECTED or (task.status, task.stage) == (Status.PENDING, Stage.BLOCKED):
        return [(f"septet move {task.id} triaged", "let it start")]
    if task.status is Status.CANCELLED:
        was_refused = task.error is not None and task.error.type == "InvalidInput"
        return [] if was_refused else [(f"septet retry {task.id}", "continue it")]
    if task.has_plan_alone:
        return [(f"septet plan {task.id}", "read the plan"), (f"septet retry {task.id}", "continue with it")]
    if task.status is not Status.COMPLETED or task.stage is not Stage.REVIEW:
        return []
    commands = [(f"septet diff {task.id}", "see the changes")]
    if (pull := LOCAL_PULL.fullmatch(task.pr_url or "")) is not None:
        repository = shlex.quote(unquote(pull["path"]))
        commands.append((f"septet pr merge {pull['number']} --repo {repository}", "merge them"))
    return commands


def show_decision(task: Task, verdict: str, findings: Sequence[str] = ()) -> None:
    """Print a work order after a decision, then `verdict` (such as `approved`) with the findings or plan."""
    show_task(task, waits=task.question or None)
    if findings:
        console().print(Text(f"{verdict:<14}{' '.join(findings)}"), soft_wrap=True)
        return
    console().print(Text(f"{verdict:<14}{task.plan_path}  SHA-256 {task.plan_sha256}"), soft_wrap=True)


def task_view(task: Task, running: str = "", standing: str = RUNNING) -> RenderableType:
    """Return what rich prints for a work order with its steps; `standing` is the state of the step `running`."""
    under_way = StepUnderWay(running, standing) if running else None
    return Group(heading_of(task), *([steps_table(task.steps, under_way)] if task.steps or running else []))


def heading_of(task: Task) -> Text:
    """Return one line, in the terminal's width, with a work order's id, issue, title and status."""
    name, status = Text(task.id, style="bold"), Text(status_of(task), style=STYLE_OF.get(status_of(task), ""))
    title = Text(cut_to_line(task.title, LONGEST_CELL))
    room = console().width - len(task.id) - len(issue_of(task)) - len(status) - 3 * GAP
    title.truncate(max(LEAST_TITLE, room), overflow="ellipsis")
    return Text(" " * GAP).join(part for part in (name, Text(issue_of(task)), title, status) if part)


def status_of(task: Task) -> str:
    """Return a work order's status, or `stuck` if no worker can continue the work order."""
    return "stuck" if task.stuck else task.status.value


def issue_of(task: Task) -> str:
    """Return the project and the issue's number; only the project if there is no number."""
    return f"{task.project} #{task.issue_number}".strip() if task.issue_number else task.project


def notes_on(tasks: Iterable[Task], nobody: str = "") -> str:
    """Return the notes above a table of work orders: `nobody` (a notice of missing workers), and silent hosts."""
    waits: dict[str, list[str]] = {}
    for task in tasks:
        if task.host_wait:
            waits.setdefault(task.host_wait, []).append(task.id)
    lines = (printable(f"{name_some(ids, _NAMED)}: {wait}") for wait, ids in waits.items())
    return "\n".join(filter(None, (nobody, *lines)))


def end_lines(task: Task, *, with_error: bool = False) -> list[Text]:
    """Return the lines on a work order's outcome: pull request, commit, rescues; if `with_error`, the error."""
    lines = []
    if task.stuck:
        lines.append(Text(printable(f"stuck         {task.stuck}"), style="red"))
    if task.error and with_error:
        lines.append(Text(printable(f"{task.error.type}: {task.error.message}"), style="red"))
        lines += [Text(printable(task.error.remedy))] if task.error.remedy else []
    if task.waits_for_a_decision and (task.plan_path is not None or not task.stuck):
        plan = f"{task.plan_path}  SHA-256 {task.plan_sha256}" if task.plan_path else _NO_PLAN
        lines.append(Text(f"plan          {plan}"))
    findings = (f"finding       {each.id or 'cannot be approved'}  {each.where}" for each in task.findings)
    lines += [Text(printable(finding)) for finding in findings]
    if task.pr_url:
        lines.append(Text.assemble("pull request  ", (task.pr_url, "bold green")))
    if task.commit_sha:
        lines.append(Text(f"commit        {task.commit_sha[:12]} on {task.branch_name}"))
    if task.checks_passed:
        lines.append(Text(f"checks        {task.checks_passed} passed before the commit"))
    for rescue in task.rescues[-_RESCUES_SHOWN:]:
        told = (rescue.telling if rescue.is_left_by_planner else rescue.reason).partition("\n")[0].rstrip(":")
        patch = f"\n              {rescue.patch}" if rescue.patch else ""
        lines.append(Text(f"rescue        {rescue.snapshot}: {printable(told)}{patch}"))
    if (more := len(task.rescues) - _RESCUES_SHOWN) > 0:
        lines.append(Text(f"              and {more} more: septet rescue list {task.id}"))
    if task.unconfined:
        lines.append(Text(printable(f"unconfined    {task.unconfined}"), style="yellow"))
    return lines


def steps_table(rows: Sequence[TaskStep], under_way: StepUnderWay | None = None) -> Table:
    """Return the steps as a table; the running step is the last row."""
    cells = [_cells(row) for row in rows]
    if under_way is not None:
        doing = f": {headline(under_way.doing)}" if under_way.doing is not None else ""
        told = escape(cut_to_line(f"{under_way.standing}{doing}", LONGEST_CELL))
        tokens = f"{under_way.tokens:,}" if under_way.tokens else ""
        cells.append(("…", under_way.step, f"[dim]{told}[/dim]", "", tokens, "", ""))
    columns = zip(_HEADINGS, *cells, strict=True)
    widths = [max(Text.from_markup(cell).cell_len for cell in column) for column in columns]
    widths[_RESULT] = _LEAST_RESULT
    while len(widths) > _RESULT + 1 and _width(widths) > console().width:
        widths.pop()
    widths[_RESULT] += max(console().width - _width(widths), 0)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name, width in zip(_HEADINGS, widths, strict=False):
        justify: JustifyMethod = "right" if name in {"time", "tokens", "attempts"} else "left"
        table.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis", width=width)
    for row_cells in cells:
        table.add_row(*row_cells[: len(widths)])
        if row_cells[_NOTE] and len(widths) <= _NOTE:
            table.add_row("", "", Text(f"({row_cells[_NOTE]})", style="dim", no_wrap=False))
    return table


def _width(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def cut_to_line(text: str, cells: int) -> str:
    """Return a text on one line, at most `cells` columns wide."""
    line = Text(" ".join(printable(text).split()))
    line.truncate(cells, overflow="ellipsis")
    return line.plain


def _cells(row: TaskStep) -> tuple[str, ...]:
    mark = "[green]✓[/green]" if row.success else "[red]✗[/red]"
    result = (row.output if row.success else row.error_message) or ""
    result = escape(printable(" ".join(result.partition("\n\n")[0].split())[:200]))
    recovered_by = RECOVERIES.get(row.recovered_by or "", row.recovered_by)
    note = ", ".join(filter(None, (row.reading.removeprefix("read from "), recovered_by)))
    seconds, tokens = f"{row.duration_seconds:.1f} s", f"{row.usage.tokens:,}"
    return (mark, row.step, result, seconds, tokens, str(row.attempts), note)
