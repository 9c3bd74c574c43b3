"""The replies about pipelines, the same on every interface."""

from pydantic import Field

from septet.contracts.costs import Estimate
from septet.contracts.pipeline_view import (
    ExecutionResults,
    IssueStatus,
    PipelineReport,
    PipelineStatus,
    PipelineView,
    PlanningResults,
)
from septet.contracts.replies import PagedReply, Reply
from septet.contracts.wire import Wire


class PipelineReply(Reply):
    """The reply to the start of a pipeline and to every decision about the pipeline."""

    pipeline: PipelineView
    estimate: Estimate | None = None
    """The expected cost: at the start, the cost of the whole pipeline; later, the cost of all issues without a
    result."""


class DryRunIssue(Wire):
    """One issue of a pipeline that was not started."""

    id: str
    title: str = ""
    depends_on: tuple[str, ...] = ()


class PipelineDryRunReply(Reply):
    """A pipeline that was not started."""

    repository: str
    planner: str
    """The agent that plans; empty if no worker reports its default agent."""
    executor: str
    executors: int
    one_branch: bool
    issues: tuple[DryRunIssue, ...]
    """The issues in the order of work."""
    estimate: Estimate
    """The expected cost."""


class PipelineRow(Wire):
    """A pipeline in a list."""

    id: str
    repository: str
    status: PipelineStatus
    created_at: str
    """The time of the pipeline's start: ISO 8601, UTC. `closed_at` has the same form."""
    closed_at: str | None = None
    counts: dict[IssueStatus, int] = Field(default_factory=dict)
    """The number of issues, by status; empty if the pipeline did not answer."""
    reason: str = ""
    """Why the pipeline failed, or the first issue that failed with the reason; empty without a failure."""


class PipelinesReply(PagedReply):
    """Pipelines: open pipelines before closed pipelines, the newest first."""

    pipelines: tuple[PipelineRow, ...] = ()


class ResultsReply(Reply):
    """Both documents of a pipeline's results, which are valid also while the pipeline runs."""

    planning: PlanningResults
    """The planning results, with the whole solution if this host has the solution, and otherwise with its
    outline."""
    execution: ExecutionResults


class ReportReply(Reply):
    """The current report on a pipeline."""

    report: PipelineReport
    markdown: str
    """The report as Markdown."""
