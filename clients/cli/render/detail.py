"""Print one work order for `septet show`, and its steps in full for `septet steps`."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from rich.text import Text

from clients.cli.render.logs import show_refusals
from clients.cli.render.tables import age_of
from clients.cli.render.work_order import (
    RECOVERIES,
    end_lines,
    heading_of,
    next_commands,
    show_commands,
    steps_table,
    tokens_text,
)
from clients.cli.terminal.console import console
from clients.disk.runs import refused_to
from clients.operations.under_way import StepUnderWay, elapsed_seconds
from septet.contracts.amounts import cost_text
from septet.contracts.facts import FileChange, Usage
from septet.contracts.names import Stage, Status, Step
from septet.contracts.replies import DetailReply
from septet.contracts.rework import ReworkRound
from septet.contracts.task import TaskStep
from septet.system.masking import printable


def show_detail(detail: DetailReply, under_way: StepUnderWay | None = None) -> None:
    """Print a work order: why it waits, its facts, steps and outcome, and the next commands."""
    task, out, running = detail.task, console(), under_way.step if under_way is not None else ""
    out.print(heading_of(task))
    if detail.waiting_for:
        label = "waiting" if detail.waiting_for[:1].isupper() else "waiting for"
        out.print(Text(printable(f"{label:<14}{detail.waiting_for}"), style="yellow"), soft_wrap=True)
    for name, value in _facts(detail, running):
        out.print(Text(f"{name:<14}{printable(value)}"), soft_wrap=True)
    for failing in detail.fails_on_base:
        out.print(Text(f"{'base':<14}{printable(failing)}", style="yellow"), soft_wrap=True)
    if task.steps or under_way is not None:
        out.print(steps_table(task.steps, under_way))
    for line in end_lines(task, with_error=not task.host_wait):
        out.print(line, soft_wrap=True)
    show_refusals(task.id, refused_to(detail.refused_in_setup, detail.runs))
    show_commands(out, next_commands(task))


def _facts(detail: DetailReply, running: str) -> Iterator[tuple[str, str]]:
    """Yield the main facts about a work order as name and value; unknown facts are omitted."""
    task = detail.task
    if task.repository_url:
        yield "repository", f"{task.repository_url}{f', from {detail.base}' if detail.base else ''}"
    if (task.status, task.stage) == (Status.PENDING, Stage.BLOCKED) and detail.history:
        yield "blocked", detail.history[-1].why or f"by {detail.history[-1].who}"
    if task.assigned_agent:
        yield "agent", task.assigned_agent
    if running:
        number = next((step.number for step in Step if step.value == running), 0)
        yield "step", f"{number} of {len(Step)}: {running}" if number else running
    if task.rework is not None:
        yield "follow", task.rework.text
    if task.created_at:
        elapsed = timedelta(seconds=round(elapsed_seconds(task)))
        began = "created" if task.status is Status.PENDING else "started"
        yield "time", f"{elapsed}, {began} {age_of(task.created_at)} ago"
    if detail.estimate is not None and detail.estimate.is_known:
        yield "estimate", detail.estimate.text.removeprefix("Estimate").lstrip(": ")
    if task.usage.tokens:
        yield "tokens", f"{tokens_text(task, task.usage.tokens)}, {cost_text(task.usage)}"


_FILES_SHOWN = 20
_MARKS: Final = {"done": ("✓", "green"), "working": ("▸", "cyan")}
"""The symbol and the style of a round's outcome; any other outcome is a failure."""


def show_steps(rows: Sequence[TaskStep]) -> None:
    """Print each step in full: time, agent, result, tokens, files and warnings."""
    out, known = console(), set[FileChange]()
    if not rows:
        out.print("No step has ended yet.")
    for number, row in enumerate(rows, 1):
        mark, style = ("✓", "green") if row.success else ("✗", "red")
        if number > 1:
            out.print()
        began = datetime.fromisoformat(row.timestamp).astimezone() if row.timestamp else None
        when = f"{began:%Y-%m-%d %H:%M:%S}, " if began is not None else ""
        attempts = f", attempt {row.attempts}" if row.attempts > 1 else ""
        facts = f"  {when}{row.duration_seconds:.1f} s{attempts}"
        out.print(Text.assemble((mark, style), (f" {row.step}", "bold"), facts), soft_wrap=True)
        for name, value in _step_facts(row, [change for change in row.files_changed if change not in known]):
            out.print(Text(f"  {name:<10}{printable(value)}"), soft_wrap=True)
        known.update(row.files_changed)


def show_rounds(rounds: Sequence[ReworkRound]) -> None:
    """Print each round on the pull request: number, outcome, commit, and the events that caused the round."""
    out = console()
    for row in rounds:
        mark, style = _MARKS.get(row.outcome, ("✗", "red"))
        commit = f"  {row.commit_sha[:12]}" if row.commit_sha else ""
        out.print()
        head = Text.assemble((mark, style), (f" round {row.number}", "bold"), f"  {row.outcome}{commit}")
        out.print(head, soft_wrap=True)
        for event in row.events:
            out.print(Text(f"  answers   {printable(event)}"), soft_wrap=True)


def _step_facts(row: TaskStep, changes: Sequence[FileChange]) -> Iterator[tuple[str, str]]:
    """Yield a step's facts as name and value; `changes` has the step's files that no earlier step listed."""
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
    """Return used tokens and their cost as text."""
    cached = f", {usage.cache_read_tokens:,} from the cache" if usage.cache_read_tokens else ""
    cached += f", {usage.cache_write_tokens:,} to the cache" if usage.cache_write_tokens else ""
    cost = cost_text(usage)
    return f"{usage.input_tokens:,} in, {usage.output_tokens:,} out{cached}{f', {cost}' if cost else ''}"
