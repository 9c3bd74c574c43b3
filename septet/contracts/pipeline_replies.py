"""What every face answers about pipelines."""

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
    """A pipeline: what its start and every decision about it answer."""

    pipeline: PipelineView
    estimate: Estimate | None = None
    """What it will cost: at its start all of it, and while it is open all issues that have no result yet."""


class DryRunIssue(Wire):
    """One issue of a pipeline as it would be worked on."""

    id: str
    title: str = ""
    depends_on: tuple[str, ...] = ()


class PipelineDryRunReply(Reply):
    """A pipeline that was not started."""

    repository: str
    planner: str
    """The agent that plans; empty where no worker tells."""
    executor: str
    executors: int
    one_branch: bool
    issues: tuple[DryRunIssue, ...]
    """In the order in which they would be worked on."""
    estimate: Estimate
    """What it would cost."""


class PipelineRow(Wire):
    """A pipeline in a list."""

    id: str
    repository: str
    status: PipelineStatus
    created_at: str
    """ISO 8601, UTC; so is `closed_at`."""
    closed_at: str | None = None
    counts: dict[IssueStatus, int] = Field(default_factory=dict)
    """How many issues are where; empty where nobody could be asked."""
    reason: str = ""
    """Why it failed, or which of its issues failed first, and why; empty where none did."""


class PipelinesReply(PagedReply):
    """Pipelines, newest first: the open ones before the closed ones."""

    pipelines: tuple[PipelineRow, ...] = ()


class ResultsReply(Reply):
    """Both documents of a pipeline's results, true at every moment."""

    planning: PlanningResults
    """A solution is whole where this host has it, else its outline."""
    execution: ExecutionResults


class ReportReply(Reply):
    """The report on a pipeline, as of now."""

    report: PipelineReport
    markdown: str
    """The same for people."""
