"""The table of a work order's steps that Temporal's web UI shows."""

from collections.abc import Iterable
from typing import Final

from septet.contracts.names import Step
from septet.contracts.task import Task, TaskStep
from septet.system.text import table_cell
from workflows.gates.findings_gate import FINDINGS_UPDATES

_FAILURE_LIMIT: Final = 2000
_SPACE: Final = "\u00a0"
"""A space at which a cell does not break."""
_GAP: Final = 2 * _SPACE
"""The end of a cell: the UI sets no space between two columns."""
_PLAN_WAITS: Final = """\
**Waiting for your decision** on the plan `{path}` (SHA-256 `{sha256}`): `septet approve {id}`, or
`septet reject {id} --feedback …`, or the update `approve_plan` or `reject_plan`."""


def format_details(task: Task, running_step: Step | None) -> str:
    """Return a work order as Markdown, for the web UI."""
    lines = [
        f"**{task.id}** · {table_cell(task.project)} · {table_cell(task.title)} · **{task.status.value}**",
        "",
        _row("step", "result", "took", "note"),
        "| --- | --- | --- | --- |",
    ]
    lines += [_format_row(row) for row in task.steps]
    if running_step is not None:
        lines.append(_row(f"…{_SPACE}{running_step.value}", "running", "", ""))
    if task.unconfined:
        lines += ["", f"*Unconfined*: {task.unconfined}"]
    if task.waits_for_a_decision:
        lines += ["", _PLAN_WAITS.format(path=task.plan_path, sha256=task.plan_sha256, id=task.id)]
    if task.budget is not None:
        lines += ["", f"**Waiting for its budget**: {task.question}"]
    if task.findings:
        lines += ["", f"**Waiting for your decision**. {task.findings_question} {FINDINGS_UPDATES}"]
    if task.plan_answer:
        lines += ["", f"Plan: {task.plan_path}. {task.plan_answer}"]
    if task.pr_url:
        lines += ["", f"Pull request: {task.pr_url}"]
    for rescue in task.rescues:
        lines += ["", f"Rescue `{rescue.snapshot}` ({table_cell(rescue.reason)}): `{rescue.patch or 'no patch'}`"]
    if task.error:
        message = table_cell(task.error.message, _FAILURE_LIMIT)
        lines += ["", f"**{task.error.type}**: {message}"]
        lines += ["", task.error.remedy] if task.error.remedy else []
    return "\n".join(lines)


def _format_row(row: TaskStep) -> str:
    mark = "✓" if row.success else "✗"
    result = row.output if row.success else row.error_message
    tokens = row.usage.tokens
    files = len(row.files_changed)
    took = (
        f"{row.duration_seconds:.1f}{_SPACE}s",
        f"{tokens:,}{_SPACE}tokens" if tokens else "",
        f"{files}{_SPACE}file{'s' * (files != 1)}" if files else "",
    )
    note = (
        f"{row.attempts} attempts" if row.attempts > 1 else "",
        f"answer {row.reading}" if row.reading else "",
        f"recovered by {row.recovered_by}" if row.recovered_by else "",
    )
    return _row(
        f"{mark}{_SPACE}{row.step}", table_cell((result or "").partition("\n\n")[0]), _join(took), _join(note)
    )


def _row(*cells: str) -> str:
    return f"| {' | '.join(f'{cell}{_GAP}' if cell else cell for cell in cells)} |"


def _join(parts: Iterable[str]) -> str:
    return ", ".join(part for part in parts if part)
