"""What every face answers about pipelines."""

from pydantic import Field

from septet.contracts.pipeline_results import ExecutionResults, PlanningResults
from septet.contracts.pipeline_view import IssueStatus, PipelineReport, PipelineStatus, PipelineView
from septet.contracts.replies import PagedReply, Reply
from septet.contracts.wire import Wire


class PipelineReply(Reply):
    """A pipeline: what its start and every decision about it answer."""

    pipeline: PipelineView


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
