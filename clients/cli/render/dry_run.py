"""Print a dry run of a work order or a pipeline."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from clients.cli.render.work_order import show_estimate
from clients.cli.terminal.console import console
from septet.contracts.replies import DryRunReply, DryRunStep
from septet.system.masking import printable

if TYPE_CHECKING:
    from septet.pipelines.views import PipelineDryRunReply

_NO_WORKER = "unknown: no worker answers"


def show_dry_run(reply: DryRunReply) -> None:
    """Print what a work order would run."""
    out = console()
    out.print(Text("Nothing was started. This would run:", style="bold"))
    issue = f"#{reply.issue_number}" if reply.issue_number else reply.title
    setup, checks = "; ".join(reply.setup), "; ".join(reply.checks)
    plan = "waits for your approval" if reply.approve_plan else "is implemented without your approval"
    plan = "the work order ends with it" if reply.plan_only else plan
    facts = (
        ("repository", f"{reply.repository}, from {reply.base_branch} ({reply.base_sha[:12]})"),
        ("issue", issue),
        ("plan", plan),
        ("budget", ", ".join(f"{limit} ({scope})" for scope, limit in reply.budgets.items()) or "none"),
        ("sandbox", reply.sandbox or _NO_WORKER),
        ("set-up", f"{setup} ({reply.setup_seconds:.0f} s in all)" if setup else "none"),
        ("checks", f"{checks} ({reply.check_seconds:.0f} s each)" if checks else "none"),
    )
    _show_facts(out, facts)
    if reply.unused_settings:
        out.print(Text(printable(f"{'settings':<14}{reply.unused_settings}"), style="yellow"), soft_wrap=True)
    _show_table(out, ("step", "agent", "model", "tools", "time", "turns", "prompt"), map(_cells, reply.steps))
    show_estimate(out, reply.estimate.text if reply.estimate is not None else "")


def show_pipeline_dry_run(reply: "PipelineDryRunReply") -> None:
    """Print what a pipeline would run."""
    out = console()
    out.print(Text("Nothing was started. This would run:", style="bold"))
    branch = ", on one branch" if reply.one_branch else ""
    facts = (
        ("repository", reply.repository),
        ("planner", reply.planner or _NO_WORKER),
        ("executor", f"{reply.executor or _NO_WORKER}, {reply.executors} in parallel{branch}"),
    )
    _show_facts(out, facts)
    rows = ((issue.id, issue.title, ", ".join(issue.depends_on)) for issue in reply.issues)
    _show_table(out, ("issue", "title", "after"), rows)
    show_estimate(out, reply.estimate.text)


def _show_facts(out: Console, facts: Iterable[tuple[str, str]]) -> None:
    for name, value in facts:
        out.print(Text(f"{name:<14}{printable(value)}"), soft_wrap=True)


def _show_table(out: Console, headings: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    out.print(table)


def _cells(step: DryRunStep) -> tuple[str, ...]:
    own = [place for place in step.commands if place.startswith(".septet/")]
    prompt = "built-in" if step.built_in else ", ".join(own)
    return (
        step.step,
        step.agent,
        step.model or "default",
        step.tools,
        f"{step.wall_seconds:.0f} s",
        str(step.turns),
        prompt,
    )
