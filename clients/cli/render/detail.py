"""Print one work order for `septet show`: its wait and stage, then its steps and its outcome."""

from collections.abc import Iterator
from datetime import timedelta

from rich.text import Text

from clients.cli.render.ages import age_of
from clients.cli.render.network import show_refusals
from clients.cli.render.work_order import (
    end_lines,
    heading_of,
    next_commands,
    show_commands,
    steps_table,
    tokens_text,
)
from clients.cli.terminal.console import console
from clients.disk.network_requests import refused_to
from clients.operations.under_way import StepUnderWay, elapsed_seconds
from septet.contracts.amounts import cost_text
from septet.contracts.names import Stage, Status, Step
from septet.contracts.replies import DetailReply
from septet.system.preview import printable


def show_detail(detail: DetailReply, under_way: StepUnderWay | None = None) -> None:
    """Print a work order; text that people copy has its own line, of any length."""
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
    """Yield the known facts of a work order that a person reads first."""
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
