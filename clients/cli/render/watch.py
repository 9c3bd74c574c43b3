"""Render `septet watch`: as a picture that is repainted, or as one line for each event."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from clients.cli.render.logs import headline, is_structured
from clients.cli.render.work_order import (
    end_lines,
    next_commands,
    show_commands,
    show_task,
    task_view,
    tokens_text,
)
from clients.cli.terminal.console import PATCH_STYLES
from clients.cli.terminal.output import wrap
from clients.operations.under_way import elapsed_seconds
from clients.patches import PatchFile, files_of
from clients.tool_calls import only_confirms
from septet.contracts.amounts import cost_text
from septet.contracts.host_files import DiffView, LogEntry, PlanView
from septet.contracts.replies import WatchReply
from septet.system.masking import preview, printable
from septet.system.text import count_noun

_PLAN_LINES: Final = 6
_ENTRY_LIMIT: Final = 160
_LEAST_LINES: Final = 3
"""The fewest lines of the patch that a picture shows; with less room, the picture omits the patch."""


class WatchPicture:
    """A picture of a work order in the terminal's size, made from the last reply."""

    def __init__(self) -> None:
        self._last: WatchReply | None = None
        self._spinner = Spinner("dots")
        self._width = 0

    def take(self, look: WatchReply) -> None:
        """Set the reply that the picture shows."""
        self._last = look

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the parts of the picture: steps, time and tokens, plan, and as much of the patch as fits."""
        look = self._last
        if look is None:
            return
        self._width = console.width
        parts = [task_view(look.task, look.running_step, look.standing), self._under_way(look), figures(look)]
        if look.unseen:
            parts.append(Text(wrap(look.unseen, console.width), style="dim"))
        if look.plan is not None:
            parts += ["", *_plan(look.plan)]
        if look.diff is not None and look.diff.files:
            parts += ["", diff_stat(look.diff, console.width)]
            room = options.size.height - 2 - len(console.render_lines(Group(*parts), options, pad=False))
            plan = look.plan.path if look.plan is not None else ""
            excerpt = [line for file in files_of(look.diff.patch) if file.path != plan for line in _lines(file)]
            parts += ["", *excerpt[: room - 1]] if room >= _LEAST_LINES else []
        yield Group(*parts)

    def _under_way(self, look: WatchReply) -> RenderableType:
        if look.task.stuck:
            return Text(wrap(f"stuck: {printable(look.task.stuck)}", self._width), style="red")
        if look.waiting_for:
            return Text(wrap(printable(_wait_line(look.waiting_for)), self._width), style="yellow")
        if not look.running_step:
            return Text("")
        words = look.running_step
        if look.doing is not None:
            words += f" · {preview(headline(look.doing), limit=_ENTRY_LIMIT)}"
        self._spinner.update(text=_one_line(words, style="cyan"))
        return self._spinner


def _wait_line(waiting_for: str) -> str:
    return f"Waiting: {waiting_for}" if waiting_for[:1].isupper() else f"Waiting for {waiting_for}"


class WatchLines:
    """Turns the replies on a work order into plain lines, for an output that is no terminal."""

    def __init__(self) -> None:
        self._last: WatchReply | None = None
        self._steps = 0

    def new_lines(self, look: WatchReply) -> Iterator[str]:
        """Yield the lines on what is new in a reply: status, steps that began or ended, and log entries."""
        before, self._last = self._last, look
        name = " ".join(part for part in (look.task.id, look.task.title) if part)
        status = f"{preview(name)}: {look.task.status.value}"
        is_new = before is None or before.task.status is not look.task.status
        if is_new and not look.task.is_closed:
            yield status
        if look.task.stuck and (before is None or before.task.stuck != look.task.stuck):
            yield f"stuck: {preview(look.task.stuck)}"
        if look.waiting_for and (before is None or before.waiting_for != look.waiting_for):
            yield preview(_wait_line(look.waiting_for))
        if look.unseen and (before is None or before.elsewhere != look.elsewhere):
            yield look.unseen
        entries = look.log_entries
        for row in look.task.steps[self._steps :]:
            yield from _entry_lines(entry for entry in entries if entry.step == row.step)
            entries = tuple(entry for entry in entries if entry.step != row.step)
            words = (row.output if row.success else row.error_message) or ""
            result = preview(words.partition("\n\n")[0], limit=_ENTRY_LIMIT)
            yield f"{'✓' if row.success else '✗'} {row.step} {row.duration_seconds:.1f} s: {result}"
        self._steps = len(look.task.steps)
        if look.running_step and (before is None or before.running_step != look.running_step):
            yield f"… {look.running_step}"
        yield from _entry_lines(entries)
        if is_new and look.task.is_closed:  # after the entries before the end
            yield status


def show_end(look: WatchReply, out: Console) -> None:
    """Print a closed work order's outcome; on a terminal, print its steps too."""
    parts: list[RenderableType] = [figures(look)]
    if look.diff is not None and look.diff.files:
        parts.append(diff_stat(look.diff, out.width))
    if out.is_terminal:
        show_task(look.task, with_error=False)
        out.print(Group(*parts))
    else:
        for line in (parts[0], *end_lines(look.task)):
            out.print(line, soft_wrap=True)
    show_commands(out, next_commands(look.task))


def figures(look: WatchReply) -> Text:
    """Return a work order's elapsed time, tokens and cost on one line."""
    known = cost_text(look.task.usage)
    cost = f"   {'' if 'cost' in known else 'cost '}{known}" if known else ""
    elapsed = timedelta(seconds=round(elapsed_seconds(look.task)))
    tokens = tokens_text(look.task, look.tokens)
    return Text(f"elapsed {elapsed}   tokens {tokens}{cost}", style="dim")


def diff_stat(diff: DiffView, width: int) -> RenderableType:
    """Return the number of changed files and lines, and the first files, each with its number of changed lines."""
    first = diff.files[:5]
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(width - 16, 12))
    table.add_column(justify="right", style="green")
    table.add_column(justify="right", style="red")
    for file in first:
        counts = ("binary", "") if file.added is None else (f"+{file.added}", f"-{file.removed}")
        table.add_row(Text(printable(file.path)), *counts)
    more = len(diff.files) - len(first)
    added = sum(file.added or 0 for file in diff.files)
    removed = sum(file.removed or 0 for file in diff.files)
    total = f"{count_noun(len(diff.files), 'file')} changed, +{added} -{removed}"
    return Group(Text(total, style="bold"), table, *([Text(f"and {more} more", style="dim")] if more else []))


def _plan(plan: PlanView) -> Iterator[Text]:
    lines = [line for line in printable(plan.text).split("\n") if line.strip()]
    yield _one_line(printable(plan.path), style="bold")
    yield from (_one_line(line) for line in lines[:_PLAN_LINES])
    if (more := len(lines) - _PLAN_LINES) > 0 or not plan.whole:
        yield Text(f"… {more} more line{'s' * (more != 1)}" if more > 0 else "…", style="dim")


def _lines(file: PatchFile) -> Iterator[Text]:
    yield _one_line(printable(file.path), style="bold")
    yield from (_one_line(printable(line.text), style=PATCH_STYLES[line.kind]) for line in file.lines)


def _one_line(text: str, style: str = "") -> Text:
    return Text(text.expandtabs(4), style=style, no_wrap=True, overflow="ellipsis", end="\n")


def _entry_lines(entries: Iterable[LogEntry]) -> Iterator[str]:
    """Yield a line for each log entry, except entries that only repeat another entry."""
    for entry in entries:
        if not is_structured(entry) and not only_confirms(entry):
            mark = {"tool_result": "  ", "error": "! "}.get(entry.kind, "")
            yield f"    {mark}{preview(headline(entry).removeprefix('! '), limit=_ENTRY_LIMIT)}"
