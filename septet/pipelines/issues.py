"""The issues of a pipeline, in the order in which they are worked on."""

from collections.abc import Iterable

from septet.contracts.pipeline import PipelineIssue


def ordered(issues: Iterable[PipelineIssue]) -> list[PipelineIssue]:
    """Return the issues in their order."""
    return list(issues)
