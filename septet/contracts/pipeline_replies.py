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
    """A pipeline: the reply to its start and to every decision about it."""

    pipeline: PipelineView
    estimate: Estimate | None = None
    """The expected cost: at the start of the whole pipeline, later of all issues without a result."""


class DryRunIssue(Wire):
    """One issue of a pipeline that was not started."""

    id: str
    title: str = ""
    depends_on: tuple[str, ...] = ()


class PipelineDryRunReply(Reply):
    """A pipeline that was not started."""

    repository: str
    planner: str
    """The agent that plans; empty if no worker reports it."""
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
    """The time of its start: ISO 8601, UTC; so is `closed_at`."""
    closed_at: str | None = None
    counts: dict[IssueStatus, int] = Field(default_factory=dict)
    """By status: the number of issues; empty if the pipeline did not answer."""
    reason: str = ""
    """Why it failed, or which of its issues failed first, and why; empty if none failed."""


class PipelinesReply(PagedReply):
    """Pipelines, newest first: the open ones before the closed ones."""

    pipelines: tuple[PipelineRow, ...] = ()


class ResultsReply(Reply):
    """Both documents of a pipeline's results, valid also while it runs."""

    planning: PlanningResults
    """The planning results; a solution is whole if this host has it, otherwise its outline."""
    execution: ExecutionResults


class ReportReply(Reply):
    """The current report on a pipeline."""

    report: PipelineReport
    markdown: str
    """The report as Markdown."""
