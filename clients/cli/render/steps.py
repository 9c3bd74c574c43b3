"""Print the steps of a work order one by one, with the facts that `septet show` omits."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from rich.text import Text

from clients.cli.render.work_order import RECOVERIES
from clients.cli.terminal.console import console
from septet.contracts.amounts import cost_text
from septet.contracts.facts import FileChange, Usage
from septet.contracts.rework import ReworkRound
from septet.contracts.task import TaskStep
from septet.system.preview import printable

_FILES_SHOWN = 20
_MARKS: Final = {"done": ("✓", "green"), "working": ("▸", "cyan")}
"""The mark and style of a round's outcome; any other outcome is a failure."""


def show_steps(rows: Sequence[TaskStep]) -> None:
    """Print each step: its time and agent, its whole result, tokens, files, and unusual facts."""
    out, known = console(), set[FileChange]()
    if not rows:
        out.print("No step has ended yet.")
    for number, row in enumerate(rows, 1):
        mark, style = ("✓", "green") if row.success else ("✗", "red")
        if number > 1:
            out.print()
        out.print(Text.assemble((mark, style), (f" {row.step}", "bold"), f"  {_when(row)}"), soft_wrap=True)
        for name, value in _facts(row, [change for change in row.files_changed if change not in known]):
            out.print(Text(f"  {name:<10}{printable(value)}"), soft_wrap=True)
        known.update(row.files_changed)


def show_rounds(rounds: Sequence[ReworkRound]) -> None:
    """Print each round on the pull request: its number, what it answers, its commit and its outcome."""
    out = console()
    for row in rounds:
        mark, style = _MARKS.get(row.outcome, ("✗", "red"))
        commit = f"  {row.commit_sha[:12]}" if row.commit_sha else ""
        out.print()
        head = Text.assemble((mark, style), (f" round {row.number}", "bold"), f"  {row.outcome}{commit}")
        out.print(head, soft_wrap=True)
        for event in row.events:
            out.print(Text(f"  answers   {printable(event)}"), soft_wrap=True)


def _when(row: TaskStep) -> str:
    began = f"{datetime.fromisoformat(row.timestamp).astimezone():%Y-%m-%d %H:%M:%S}, " if row.timestamp else ""
    attempts = f", attempt {row.attempts}" if row.attempts > 1 else ""
    return f"{began}{row.duration_seconds:.1f} s{attempts}"


def _facts(row: TaskStep, changes: Sequence[FileChange]) -> Iterator[tuple[str, str]]:
    """Yield the facts of a step with their names; omit the step's files if an earlier step had the same files."""
    if row.output:
        yield "result", _indent_lines(row.output)
    if row.error_message:
        yield "failed", _indent_lines(row.error_message)
    session = f", session {row.session_id}" if row.session_id else ""
    login = f" with login {row.login}" if row.login else ""
    yield "agent", f"{row.agent}{login} as {row.agent_name}{session}"
    if row.usage.tokens:
        yield "tokens", usage_text(row.usage)
    if changes:
        files = [f"{change.path} ({change.operation})" for change in changes]
        more = f", and {len(files) - _FILES_SHOWN} more" if len(files) > _FILES_SHOWN else ""
        yield "files", ", ".join(files[:_FILES_SHOWN]) + more
    if row.checks_passed:
        yield "checks", f"{row.checks_passed} passed before the commit"
    if row.reading:
        yield "answer", row.reading
    if row.recovered_by:
        yield "recovered", RECOVERIES.get(row.recovered_by, row.recovered_by)
    if row.rescue is not None:
        yield "rescue", row.rescue.snapshot
    yield from (("warning", warning) for warning in row.warnings)


def _indent_lines(text: str) -> str:
    return f"\n{' ' * 12}".join(line.rstrip() for line in text.splitlines() if line.strip())


def usage_text(usage: Usage) -> str:
    """Return a usage in words."""
    cached = f", {usage.cache_read_tokens:,} from the cache" if usage.cache_read_tokens else ""
    cached += f", {usage.cache_write_tokens:,} to the cache" if usage.cache_write_tokens else ""
    cost = cost_text(usage)
    return f"{usage.input_tokens:,} in, {usage.output_tokens:,} out{cached}{f', {cost}' if cost else ''}"
