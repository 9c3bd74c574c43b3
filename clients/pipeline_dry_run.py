"""Report what a pipeline would run, from its issues on the forge, without starting or keeping anything."""

import asyncio
from pathlib import Path

from clients.operations import Operations
from septet.contracts.pipeline import PipelineInput, PipelineIssue, ReadIssues
from septet.contracts.pipeline_replies import DryRunIssue, PipelineDryRunReply
from septet.costs.estimate import WHOLE
from septet.forges.choose import forge_for
from septet.git.engine.address import parse_address
from septet.pipelines.forge_issues import read_issues
from septet.pipelines.issues import merge_issues, order_issues
from septet.settings import Settings


async def dry_run_pipeline(
    operations: Operations, order: PipelineInput, settings: Settings
) -> PipelineDryRunReply:
    """Check a pipeline as its start would, and return what it would run.

    Raises:
        SeptetError: It would be refused, or its issues cannot be read.
    """
    order, agents = await operations.for_pipelines.prepare(order)
    issues = order_issues(await asyncio.to_thread(_read_issues, order, settings))
    planner, executor = agents
    return PipelineDryRunReply(
        repository=order.repository,
        planner=planner,
        executor=executor,
        executors=order.executors,
        one_branch=order.one_branch,
        issues=tuple(DryRunIssue(id=each.id, title=each.title, depends_on=each.depends_on) for each in issues),
        estimate=await operations.for_pipelines.estimate(order, agents, (WHOLE,) * len(issues)),
    )


def _read_issues(order: PipelineInput, settings: Settings) -> list[PipelineIssue]:
    """Return the issues as the pipeline would read them: those of the forge with title and dependencies."""
    numbers = tuple(str(issue.number) for issue in order.issue_list if issue.number is not None)
    if not numbers and order.label is None:
        return list(order.issue_list)
    forge = forge_for(parse_address(order.repository, home=Path.home()), settings)
    request = ReadIssues(repository=order.repository, ids=numbers, label=order.label)
    return merge_issues(order.issue_list, read_issues(forge, request))
