"""The two documents of a pipeline's results: `planning-results.json` and `execution-results.json`."""

from typing import Literal

from septet.contracts.wire import Wire


class PlanningResult(Wire):
    """One entry of `planning-results.json`."""

    issue_id: str
    solution_id: str | None = None
    """`solution.id`, so that both documents name the solution alike."""
    status: Literal["completed", "failed", "skipped"]
    solution: dict[str, object] | None = None
    """Whole on disk; in a query, and where the disk does not have it, its outline."""
    planned_at: str | None = None
    """ISO 8601, UTC; `None` where there is no plan."""


class ExecutionResult(Wire):
    """One entry of `execution-results.json`."""

    issue_id: str
    solution_id: str | None = None
    """Equal to `PlanningResult.solution_id`: this document is read without the other, and has no `solution`."""
    status: Literal["completed", "failed", "cancelled", "skipped"]
    commit_hash: str | None = None
    files_modified: tuple[str, ...] = ()
    """Whole on the disk of the host that carried it out; elsewhere the first twenty."""
    executed_at: str | None = None
    """ISO 8601, UTC; `None` where nothing was carried out."""


class PlanningResults(Wire):
    """`planning-results.json`."""

    phase: Literal["planning"] = "planning"
    created_at: str
    results: tuple[PlanningResult, ...] = ()


class ExecutionResults(Wire):
    """`execution-results.json`."""

    phase: Literal["execution"] = "execution"
    created_at: str
    results: tuple[ExecutionResult, ...] = ()
