"""What a pipeline reads from a forge, and what it keeps on disk."""

from dataclasses import dataclass

from temporalio import activity

from activities._room import Host
from septet.contracts.pipeline import IssuesRead, PipelineIssue, PipelineView, ReadIssues


@dataclass(frozen=True, slots=True)
class Pipelines:
    """The pipelines of one host."""

    host: Host

    @activity.defn(name="read_issues")
    async def read_issues(self, asked: ReadIssues) -> IssuesRead:
        """Return the issues."""
        return IssuesRead(issues=tuple(PipelineIssue(id=i) for i in asked.ids))

    @activity.defn(name="note_results")
    async def note_results(self, some: PipelineView) -> None:
        """Note the results of the issues that have changed."""

    @activity.defn(name="write_report")
    async def write_report(self, view: PipelineView) -> None:
        """Write the report."""
