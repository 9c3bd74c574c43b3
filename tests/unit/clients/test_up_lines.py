from datetime import UTC, datetime

from clients.cli.serve.up import WorkOrderLines
from septet.contracts.amounts import BudgetWait
from septet.contracts.names import Stage, Status
from septet.contracts.task import Task

NOW = datetime(2025, 1, 1, tzinfo=UTC)
TASK = Task(
    id="wo-1", title="Totals", status=Status.RUNNING, stage=Stage.EXECUTING, updated_at="2025-01-02T00:00:00Z"
)


def lines_of(lines: WorkOrderLines, *changes: dict[str, object]) -> list[str]:
    """Return the lines for a work order's successive changes."""
    return [line for change in changes for line in lines.new_lines([TASK.model_copy(update=change)])]


def test_each_change_of_a_work_order_is_a_line() -> None:
    """Start, wait and end are a line each with the next command; so is a budget that a later round has used up."""
    spent = BudgetWait(
        scope="day", message="It is used up.", remedy="Raise it with `septet budget raise day 5usd`."
    )
    line = f"wo-1 is waiting: {spent.message} {spent.remedy}  (Totals)"
    completed: dict[str, object] = {"status": Status.COMPLETED, "pr_url": "https://github.com/o/r/pull/1"}
    assert lines_of(
        WorkOrderLines(NOW), {}, {}, {"status": Status.WAITING}, {"status": Status.WAITING, "budget": spent}, completed,
        {**completed, "budget": spent}, {**completed, "budget": spent}, completed,
    ) == [
        "wo-1 is running: Totals", "wo-1 is waiting for your approval: septet approve wo-1  (Totals)", line,
        "wo-1 is completed: https://github.com/o/r/pull/1  (Totals)", line,
    ]  # fmt: skip


def test_what_ended_before_is_no_news() -> None:
    """A work order that ended before `septet up` began has no line."""
    old: dict[str, object] = {"status": Status.FAILED, "updated_at": "2024-12-31T00:00:00Z"}
    assert lines_of(WorkOrderLines(NOW), old) == []
    assert lines_of(WorkOrderLines(NOW), {"status": Status.FAILED}) == ["wo-1 failed: septet show wo-1  (Totals)"]
