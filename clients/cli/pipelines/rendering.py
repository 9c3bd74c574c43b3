"""Print one pipeline, once or live; print lists, results and reports of pipelines."""

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import unquote

from rich.console import Group, JustifyMethod, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from clients.cli.render.tables import GAP, age_of, fit, table_of
from clients.cli.terminal.console import console
from clients.cli.terminal.output import notify
from clients.operations.absence import Absence, outlast, outlast_wait
from clients.operations.operations import Operations
from clients.pipelines.rows import counts_of
from septet.contracts.names import LOCAL_PULL
from septet.pipelines.views import (
    IssueState,
    IssueStatus,
    PipelineRow,
    PipelinesReply,
    PipelineView,
    ResultsReply,
)
from septet.system.masking import preview, printable

_HEADINGS: Final = ("issue", "status", "title", "plan", "work", "commit", "pull request")
_ANY_WIDTH: Final[Mapping[str, int]] = {}
_FIXED_WIDTH: Final = {"status": len("completed"), "plan": len("300.0 s"), "work": len("600.0 s"), "commit": 12}
"""The least widths of columns in a live picture, so that columns do not move while issues progress."""
_GIVES: Final = ((2, 12), (3, None), (4, None), (5, 0), (2, 0))
"""The numbers of the columns that shrink, in order, with their least widths; `None` omits a column."""
_HEADING_LINES: Final = 4
"""The number of lines of a picture that show no issue: heading, column names, omitted issues, empty line."""
_ROW_HEADINGS: Final = ("id", "state", "age", "issues", "repository")
_ROW_GIVES: Final = ((4, 16), (3, 12), (4, 0), (3, 0), (2, 0))
_CLOSED: Final = (IssueStatus.COMPLETED, IssueStatus.FAILED, IssueStatus.SKIPPED, IssueStatus.CANCELLED)
_STYLE_OF: Final = {
    "completed": "green", "failed": "red", "cancelled": "yellow", "skipped": "yellow", "stopped": "yellow",
    "paused": "yellow", "stopping": "yellow", "planning": "cyan", "executing": "cyan", "running": "cyan",
}  # fmt: skip


def show_pipeline(view: PipelineView) -> None:
    """Print a pipeline with its issues and their errors."""
    out = console()
    out.print(_heading(view), soft_wrap=True)
    if view.reason:
        out.print(Text(printable(view.reason), style="dim"), soft_wrap=True)
    for need in view.needs:
        out.print(Text(printable(need), style="yellow"), soft_wrap=True)
    if view.issues:
        out.print(_table(view.issues, out.width if out.is_terminal else None))
    for issue in view.issues:
        for line in _reasons(issue):
            out.print(line, soft_wrap=True)
    if view.stuck:
        out.print(Text(printable(f"stuck: {view.stuck}"), style="red"), soft_wrap=True)
    if view.error is not None:
        out.print(Text(printable(f"{view.error.type}: {view.error.message}"), style="red"), soft_wrap=True)
        if view.error.remedy:
            out.print(Text(printable(view.error.remedy)), soft_wrap=True)


def next_commands(view: PipelineView) -> list[tuple[str, str]]:
    """Return the commands, with their purposes, that people type next about a pipeline that has just closed."""
    pulls = [pull for issue in view.issues if (pull := LOCAL_PULL.fullmatch(issue.pr_url or "")) is not None]
    commands = [(f"septet pipeline report {view.id}", "read what was done")]
    if pulls:
        numbers = " ".join(dict.fromkeys(pull["number"] for pull in pulls))
        repository = shlex.quote(unquote(pulls[0]["path"]))
        commands.append((f"septet pr merge {numbers} --repo {repository}", "merge the pull requests"))
    return commands


async def follow_pipeline(operations: Operations, pipeline_id: str, *, as_json: bool) -> PipelineView:
    """Show a pipeline until it is over, in a picture or, without a terminal, in lines; return the pipeline."""
    absence = Absence(pipeline_id, watch=f"septet pipeline show {pipeline_id}")
    if as_json:
        return await outlast_wait(lambda: operations.pipelines.wait(pipeline_id), absence, notify)
    out = console()

    def say(words: str) -> None:
        out.print(Text(words, style="yellow"), soft_wrap=True)

    views = outlast(lambda: operations.pipelines.views(pipeline_id), absence, say)
    if not out.is_terminal:
        lines = PipelineLines()
        async for view in views:
            for line in lines.new_lines(view):
                out.print(line, soft_wrap=True, markup=False)
        return view
    with Live(console=out, auto_refresh=False, transient=True) as live:
        async for view in views:
            live.update(picture(view, out.height), refresh=True)
    return view


def picture(view: PipelineView, height: int) -> RenderableType:
    """Return a picture of a pipeline in `height` lines, with the issues around the first open issue."""
    needs = view.needs[:2]
    room = max(height - _HEADING_LINES - 2 * len(needs), 3)
    places = (at for at, issue in enumerate(view.issues) if issue.status not in _CLOSED)
    first_open = next(places, len(view.issues))
    start = max(min(first_open - room // 4, len(view.issues) - room), 0)
    visible = view.issues[start : start + room]
    heading = _heading(view)
    heading.no_wrap, heading.overflow = True, "ellipsis"
    parts: list[RenderableType] = [heading, *(Text(printable(need), style="yellow") for need in needs)]
    if visible:
        parts.append(_table(visible, console().width, _FIXED_WIDTH))
    if more := len(view.issues) - len(visible):
        parts.append(Text(f"and {more:,} more", style="dim"))
    return Group(*parts)


class PipelineLines:
    """Turns the changes of a pipeline into plain lines, for an output that is no terminal."""

    def __init__(self) -> None:
        self._status = ""
        self._statuses: dict[str, IssueStatus] = {}
        self._needs: tuple[str, ...] = ()

    def new_lines(self, view: PipelineView) -> Iterator[str]:
        """Yield a line for each new status of an issue or the pipeline, and for each new request to a person."""
        for issue in view.issues:
            if issue.status is not self._statuses.get(issue.issue_id, IssueStatus.WAITING):
                self._statuses[issue.issue_id] = issue.status
                reason = preview(issue.error.message, limit=200) if issue.error is not None else ""
                facts = (issue.issue_id, issue.status.value, issue.title, (issue.commit_hash or "")[:12])
                yield printable("  ".join(filter(None, (*facts, issue.pr_url, reason))))
        yield from (printable(need) for need in view.needs if need not in self._needs)
        self._needs = view.needs
        if view.status.value != self._status:
            self._status = view.status.value
            yield f"{view.id}: {self._status}"


def show_list(page: PipelinesReply) -> None:
    """Print each pipeline on a line."""
    out = console()
    if not page.pipelines:
        out.print("There are no pipelines.")
    elif out.is_terminal:
        out.print(table_of([_row(row) for row in page.pipelines], out.width, _ROW_GIVES, _ROW_HEADINGS))
    else:
        for row in page.pipelines:
            sys.stdout.write("\t".join(cell.plain for cell in _row(row)) + "\n")
    if page.next is not None:
        out.print(Text(f"and more: --after {page.next}", style="dim"), soft_wrap=True)


def show_results(results: ResultsReply) -> None:
    """Print the results of planning and of execution, each as JSON below a file's name."""
    documents = {"planning-results.json": results.planning, "execution-results.json": results.execution}
    for name, document in documents.items():
        text = json.dumps(document.model_dump(mode="json"), ensure_ascii=False, indent=2)
        sys.stdout.write(f"{name}\n{printable(text)}\n")


def show_report(report: str) -> None:
    """Print a report, as Markdown."""
    sys.stdout.write(printable(report if report.endswith("\n") else f"{report}\n"))


def _heading(view: PipelineView) -> Text:
    counts = ", ".join(f"{count} {status.value}" for status, count in counts_of(view).items())
    status, repository = _status_text(view.status.value), Text(printable(view.repository))
    parts = (Text(view.id, style="bold"), status, Text(counts), repository)
    return Text(" " * GAP).join(part for part in parts if part)


def _table(issues: Sequence[IssueState], width: int | None, least: Mapping[str, int] = _ANY_WIDTH) -> Table:
    """Return a table of the issues. If `width` is given, columns shrink or disappear until the table fits."""
    rows = [[preview(cell, limit=200) for cell in _cells(issue)] for issue in issues]
    widths = [
        max(len(name), least.get(name, 0), *(Text(row[at]).cell_len for row in rows))
        for at, name in enumerate(_HEADINGS)
    ]
    if width is not None:
        widths = fit(widths, width, _GIVES)
    shown = [at for at, cells in enumerate(widths) if cells]
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, GAP, 0, 0))
    for at in shown:
        justify: JustifyMethod = "right" if _HEADINGS[at] in {"plan", "work"} else "left"
        table.add_column(_HEADINGS[at], justify=justify, no_wrap=True, overflow="ellipsis", width=widths[at])
    for row in rows:
        table.add_row(*(_status_text(row[at]) if at == 1 else Text(row[at]) for at in shown))
    return table


def _cells(issue: IssueState) -> tuple[str, ...]:
    pull = "/".join(issue.pr_url.rstrip("/").split("/")[-2:]) if issue.pr_url else ""
    times = (_seconds(issue.planning_seconds), _seconds(issue.execution_seconds))
    return (issue.issue_id, issue.status.value, issue.title, *times, (issue.commit_hash or "")[:12], pull)


def _reasons(issue: IssueState) -> Iterator[Text]:
    if issue.error is None:
        return
    is_skipped = issue.status is IssueStatus.SKIPPED
    why = issue.error.message if is_skipped else f"{issue.error.type}: {issue.error.message}"
    yield Text(printable(f"{issue.issue_id}  {why}"), style="yellow" if is_skipped else "red")
    if issue.error.remedy:
        yield Text(printable(f"    {issue.error.remedy}"))
    if issue.rescue is not None:
        yield Text(printable(f"    rescue {issue.rescue.snapshot}: {issue.rescue.reason}"))


def _row(row: PipelineRow) -> tuple[Text, ...]:
    counts = ", ".join(f"{count} {status.value}" for status, count in row.counts.items())
    cells = (age_of(row.created_at), counts, printable(row.repository))
    return (Text(row.id, style="bold"), _status_text(row.status.value), *map(Text, cells))


def _status_text(status: str) -> Text:
    return Text(status, style=_STYLE_OF.get(status, ""))


def _seconds(seconds: float | None) -> str:
    return f"{seconds:.1f} s" if seconds is not None else ""
