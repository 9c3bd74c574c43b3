"""`septet pipeline`: one agent plans many issues, and other agents implement the plans."""

from typing import Annotated, Final

from clients.cli import options as given
from clients.cli.options import argument, completed_by, option
from clients.cli.pipeline_input import NO_OPTIONS, PipelineOptions
from clients.cli.render.dry_run import show_pipeline_dry_run
from clients.cli.render.pipeline import (
    follow_pipeline,
    next_commands,
    show_list,
    show_pipeline,
    show_report,
    show_results,
)
from clients.cli.render.work_order import console, show_commands, show_estimate
from clients.cli.reply import CommandReply, tell
from clients.cli.server import SERVER, Server
from clients.cli.start import told_reviews
from clients.operations.operations import Operations
from clients.temporal.pipelines import PipelineDecision
from septet.contracts.pipeline import PipelineInput
from septet.contracts.pipeline_replies import PipelineReply
from septet.contracts.pipeline_view import IssueStatus, PipelineStatus, PipelineView
from septet.errors import SeptetError
from septet.settings import load_settings
from septet.system.text import name_some

_NAMED: Final = 10


Id = Annotated[
    str, argument(metavar="ID", help="The pipeline, such as pl-1f0c9a2b.", completer=completed_by("pipelines"))
]
Issue = Annotated[str, argument(metavar="ISSUE", help="The issue's id in the pipeline, such as 42.")]


class PipelineFailedError(SeptetError):
    """Not every issue of the pipeline was completed."""


async def pipeline(
    *,
    options: PipelineOptions = NO_OPTIONS,
    wait: Annotated[
        bool, option("--wait", help="Wait until it ends; exit with 0 only if every issue is completed.")
    ] = False,
    only_tell: Annotated[bool, option("--dry-run", help="Show what would run, and start nothing.")] = False,
    server: Server = SERVER,
) -> CommandReply:
    """Work on many issues: one agent plans them, another implements the plans."""
    order = options.order()
    operations = await server.connect()
    if only_tell:
        return await _reply_of_dry_run(operations, order)
    answer = await operations.for_pipelines.start(order, options.id)
    if told := await told_reviews(operations, order.repository, [issue.number for issue in order.issue_list]):
        tell(told)
    if not wait:
        return _reply(answer)
    if not server.as_json:
        _show_estimate(answer)
    last = await follow_pipeline(operations, answer.pipeline.id, as_json=server.as_json)
    at_end = answer.model_copy(update={"pipeline": last})
    return _reply(at_end, failure_of(last), is_at_end=True)


async def show(pipeline_id: Id, /, *, server: Server = SERVER) -> CommandReply:
    """Show one pipeline: where each issue is, with its commit, pull request and reason."""
    operations = await server.connect()
    return _reply(await operations.for_pipelines.show(pipeline_id))


async def list_pipelines(
    *, after: given.Next = "", limit: given.Limit = 50, server: Server = SERVER
) -> CommandReply:
    """List the pipelines, open ones first."""
    operations = await server.connect()

    answer = await operations.pipelines.list(after=after, limit=limit)
    return CommandReply.from_reply(answer, lambda: show_list(answer))


async def results(pipeline_id: Id, /, *, server: Server = SERVER) -> CommandReply:
    """Show what was planned and what was carried out so far, as two JSON documents."""
    operations = await server.connect()

    answer = await operations.pipelines.results(pipeline_id)
    return CommandReply.from_reply(answer, lambda: show_results(answer))


async def report(pipeline_id: Id, /, *, server: Server = SERVER) -> CommandReply:
    """Show the report on a pipeline that is over, as Markdown."""
    operations = await server.connect()

    answer = await operations.pipelines.report(pipeline_id)
    return CommandReply.from_reply(answer, lambda: show_report(answer.markdown))


async def pause(pipeline_id: Id, /, *, why: given.Why = "", server: Server = SERVER) -> CommandReply:
    """Start nothing new until you resume it."""
    return await _decide(server, pipeline_id, "pause", "", why)


async def resume(pipeline_id: Id, /, *, why: given.Why = "", server: Server = SERVER) -> CommandReply:
    """Continue after a pause."""
    return await _decide(server, pipeline_id, "resume", "", why)


async def stop(pipeline_id: Id, /, *, why: given.Why = "", server: Server = SERVER) -> CommandReply:
    """Finish the running issues and start no others."""
    return await _decide(server, pipeline_id, "stop", "", why)


async def cancel(pipeline_id: Id, /, *, why: given.Why = "", server: Server = SERVER) -> CommandReply:
    """Stop all agents now; a rescue keeps their work."""
    return await _decide(server, pipeline_id, "cancel", "", why)


async def skip(pipeline_id: Id, issue: Issue, /, *, why: given.Why = "", server: Server = SERVER) -> CommandReply:
    """Skip an issue, and the issues that depend on it."""
    return await _decide(server, pipeline_id, "skip", issue, why)


async def replan(
    pipeline_id: Id,
    issue: Issue,
    /,
    *,
    why: Annotated[str, option(metavar="TEXT", help="What the planner should do differently.")] = "",
    server: Server = SERVER,
) -> CommandReply:
    """Plan an issue again before it is implemented."""
    return await _decide(server, pipeline_id, "replan", issue, why)


async def _decide(
    server: Server, pipeline_id: str, decision: PipelineDecision, issue: str, why: str
) -> CommandReply:
    operations = await server.connect()
    return _reply(await operations.pipelines.decide(pipeline_id, decision, issue, given.current_user(), why))


def failure_of(view: PipelineView) -> PipelineFailedError | None:
    """Return the error of a closed pipeline; `None` if every issue completed."""
    unfinished = [issue for issue in view.issues if issue.status is not IssueStatus.COMPLETED]
    if view.status is PipelineStatus.COMPLETED and not unfinished:
        return None
    if view.error is not None:
        return PipelineFailedError(view.error.message, remedy=view.error.remedy)
    names = name_some([f"{issue.issue_id} ({issue.status.value})" for issue in unfinished], _NAMED)
    message = f"{view.id} is {view.status.value}; not completed: {names or 'nothing'}."
    return PipelineFailedError(message, remedy=f"See why with `septet pipeline show {view.id}`.")


async def _reply_of_dry_run(operations: Operations, order: PipelineInput) -> CommandReply:

    answer = await operations.for_pipelines.dry_run(order, load_settings())
    return CommandReply.from_reply(answer, lambda: show_pipeline_dry_run(answer))


def _reply(
    answer: PipelineReply, failure: PipelineFailedError | None = None, *, is_at_end: bool = False
) -> CommandReply:

    def show() -> None:
        show_pipeline(answer.pipeline)
        if is_at_end:
            show_commands(console(), next_commands(answer.pipeline))
        else:
            _show_estimate(answer)

    return CommandReply.from_reply(answer, show, failure)


def _show_estimate(answer: PipelineReply) -> None:

    if answer.estimate is not None and answer.estimate.is_known:
        show_estimate(console(), answer.estimate.text)
