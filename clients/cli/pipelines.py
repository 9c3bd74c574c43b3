"""`septet pipeline`: many issues, one agent that plans them and others that carry the plans out."""

from functools import cache
from typing import TYPE_CHECKING, Annotated, Final

import typer

from clients.cli import options as given
from clients.cli.grouped_help import CommandGroup, Commands
from clients.cli.pipeline_input import PipelineOptions
from clients.cli.reply import CommandReply, reply_with_operations, tell
from septet.errors import SeptetError
from septet.system.text import name_some

if TYPE_CHECKING:
    from clients.operations import Operations
    from clients.temporal.pipelines import PipelineDecision
    from septet.contracts.pipeline import PipelineInput
    from septet.contracts.pipeline_replies import PipelineReply
    from septet.contracts.pipeline_view import PipelineView

app = Commands(name="pipeline", cls=CommandGroup, no_args_is_help=True, rich_markup_mode=None)
_NAMED: Final = 10


def _complete_id(incomplete: str) -> list[str]:
    """Return the pipelines that this host's disk knows, for the shell's completion; no server is asked."""
    from clients.cli.completion import known_pipelines

    return known_pipelines(incomplete)


Id = Annotated[
    str, typer.Argument(metavar="ID", help="The pipeline, such as pl-1f0c9a2b.", autocompletion=_complete_id)
]
Issue = Annotated[str, typer.Argument(metavar="ISSUE", help="The issue's id in the pipeline, such as 42.")]


class PipelineFailedError(SeptetError):
    """Not every issue of the pipeline was completed."""


@app.callback(invoke_without_command=True)
@given.expand_options
def pipeline(
    *,
    context: typer.Context,
    options: PipelineOptions,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it ends; exit with 0 only if every issue is completed.")
    ] = False,
    only_tell: Annotated[bool, typer.Option("--dry-run", help="Show what would run, and start nothing.")] = False,
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Work on many issues: one agent plans them, another implements the plans.

    Example: septet pipeline --repo https://github.com/o/r --issues 1,2,3 --wait
    """
    if context.invoked_subcommand is not None:
        _refuse_before(context)
        return

    order = cache(options.order)  # its file is read once

    async def work(operations: "Operations") -> CommandReply:
        if only_tell:
            return await _reply_of_dry_run(operations, order())
        answer = await operations.for_pipelines.start(order(), options.id)
        from clients.cli.start import told_reviews

        if told := await told_reviews(
            operations, order().repository, [issue.number for issue in order().issue_list]
        ):
            tell(told)
        if not wait:
            return _reply(answer)
        from clients.cli.render.pipeline import follow_pipeline

        if not as_json:
            _show_estimate(answer)
        last = await follow_pipeline(operations, answer.pipeline.id, as_json=as_json)
        at_end = answer.model_copy(update={"pipeline": last})
        return _reply(at_end, failure_of(last), is_at_end=True)

    reply_with_operations(work, address=address, as_json=as_json, check=order)


@app.command()
@given.give_operations
async def show(operations: "Operations", pipeline_id: Id) -> CommandReply:
    """Show one pipeline: where each issue is, with its commit, pull request and reason.

    Example: septet pipeline show pl-1f0c9a2b
    """
    return _reply(await operations.for_pipelines.show(pipeline_id))


@app.command("list")
@given.give_operations
async def list_pipelines(
    operations: "Operations",
    after: given.Next = "",
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="How many to list at most.")] = 50,
) -> CommandReply:
    """List the pipelines, open ones first.

    Example: septet pipeline list
    """
    from clients.cli.render.pipeline import show_list

    answer = await operations.pipelines.list(after=after, limit=limit)
    return CommandReply.from_reply(answer, lambda: show_list(answer))


@app.command()
@given.give_operations
async def results(operations: "Operations", pipeline_id: Id) -> CommandReply:
    """Show what was planned and what was carried out so far, as two JSON documents.

    Example: septet pipeline results pl-1f0c9a2b --json
    """
    from clients.cli.render.pipeline import show_results

    answer = await operations.pipelines.results(pipeline_id)
    return CommandReply.from_reply(answer, lambda: show_results(answer))


@app.command()
@given.give_operations
async def report(operations: "Operations", pipeline_id: Id) -> CommandReply:
    """Show the report on a pipeline that is over, as Markdown.

    Example: septet pipeline report pl-1f0c9a2b > report.md
    """
    from clients.cli.render.pipeline import show_report

    answer = await operations.pipelines.report(pipeline_id)
    return CommandReply.from_reply(answer, lambda: show_report(answer.markdown))


def _add_decision(decision: "PipelineDecision", summary: str) -> None:
    """Add the command of a decision about a whole pipeline; `summary` is its help."""

    @app.command(decision, help=f"{summary}\n\nExample: septet pipeline {decision} pl-1f0c9a2b")
    @given.give_operations
    async def decide(operations: "Operations", pipeline_id: Id, why: given.Why = "") -> CommandReply:
        return await _decide(operations, pipeline_id, decision, "", why)


_add_decision("pause", "Start nothing new until you resume it.")
_add_decision("resume", "Continue after a pause.")


@app.command()
@given.give_operations
async def skip(operations: "Operations", pipeline_id: Id, issue: Issue, why: given.Why = "") -> CommandReply:
    """Skip an issue, and the issues that depend on it.

    Example: septet pipeline skip pl-1f0c9a2b 42 --why 'done by hand'
    """
    return await _decide(operations, pipeline_id, "skip", issue, why)


@app.command()
@given.give_operations
async def replan(
    operations: "Operations",
    pipeline_id: Id,
    issue: Issue,
    why: Annotated[
        str, typer.Option(metavar="TEXT", help="What the planner should do differently.", show_default=False)
    ] = "",
) -> CommandReply:
    """Plan an issue again before it is implemented.

    Example: septet pipeline replan pl-1f0c9a2b 42 --why 'Leave the schema as it is.'
    """
    return await _decide(operations, pipeline_id, "replan", issue, why)


_add_decision("stop", "Finish the running issues and start no others.")


_add_decision("cancel", "Stop all agents now; a rescue keeps their work.")


async def _decide(
    operations: "Operations", pipeline_id: str, decision: "PipelineDecision", issue: str, why: str
) -> CommandReply:
    return _reply(await operations.pipelines.decide(pipeline_id, decision, issue, given.current_user(), why))


def _refuse_before(context: typer.Context) -> None:
    """Refuse options of the start before a command's name: they would count for nothing."""
    sources = [context.get_parameter_source(name) for name in context.params]
    if any(source is not None and source.name == "COMMANDLINE" for source in sources):
        name = context.invoked_subcommand
        message = f"only a new pipeline takes these options; those of `{name}` come after `{name}`"
        raise typer.BadParameter(message, ctx=context)


def failure_of(view: "PipelineView") -> PipelineFailedError | None:
    """Return why a closed pipeline is no success; `None` where every issue is completed."""
    from septet.contracts.pipeline_view import IssueStatus, PipelineStatus

    unfinished = [issue for issue in view.issues if issue.status is not IssueStatus.COMPLETED]
    if view.status is PipelineStatus.COMPLETED and not unfinished:
        return None
    if view.error is not None:
        return PipelineFailedError(view.error.message, remedy=view.error.remedy)
    names = name_some([f"{issue.issue_id} ({issue.status.value})" for issue in unfinished], _NAMED)
    message = f"{view.id} is {view.status.value}; not completed: {names or 'nothing'}."
    return PipelineFailedError(message, remedy=f"See why with `septet pipeline show {view.id}`.")


async def _reply_of_dry_run(operations: "Operations", order: "PipelineInput") -> CommandReply:
    from clients.cli.render.dry_run import show_pipeline_dry_run
    from clients.pipeline_dry_run import dry_run_pipeline
    from septet.settings import load_settings

    answer = await dry_run_pipeline(operations, order, load_settings())
    return CommandReply.from_reply(answer, lambda: show_pipeline_dry_run(answer))


def _reply(
    answer: "PipelineReply", failure: PipelineFailedError | None = None, *, is_at_end: bool = False
) -> CommandReply:
    from clients.cli.render.pipeline import next_commands, show_pipeline
    from clients.cli.render.work_order import console, show_commands

    def show() -> None:
        show_pipeline(answer.pipeline)
        if is_at_end:
            show_commands(console(), next_commands(answer.pipeline))
        else:
            _show_estimate(answer)

    return CommandReply.from_reply(answer, show, failure)


def _show_estimate(answer: "PipelineReply") -> None:
    from clients.cli.render.work_order import console, show_estimate

    if answer.estimate is not None and answer.estimate.is_known:
        show_estimate(console(), answer.estimate.text)
