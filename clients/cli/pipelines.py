"""`septet pipeline`: many issues, one agent that plans them and others that carry the plans out."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from clients.cli import options as given

app = typer.Typer(name="pipeline", no_args_is_help=True, rich_markup_mode=None)


def _known_ids(incomplete: str) -> list[str]:
    """Return the pipelines that this host's disk knows, for the shell's completion; no server is asked."""
    from clients.cli.completion import known_pipelines

    return known_pipelines(incomplete)


Id = Annotated[
    str, typer.Argument(metavar="ID", help="The pipeline, such as pl-1f0c9a2b.", autocompletion=_known_ids)
]
Issue = Annotated[str, typer.Argument(metavar="ISSUE", help="The issue's id in the pipeline, such as 42.")]
OptionalRepo = Annotated[str | None, typer.Option("--repo", help="A path, or an address that git takes.")]
Numbers = Annotated[
    str | None, typer.Option("--issues", metavar="N,N,…", help="Issues of the repository's forge.")
]
Label = Annotated[str | None, typer.Option(help="The open issues of the forge that have this label.")]
IssuesFile = Annotated[
    Path | None, typer.Option("--file", help='JSON: [{"id", "title", "body", "depends_on"}, …].')
]
Planner = Annotated[str | None, typer.Option(help="The agent that plans, where it is another one.")]
Executor = Annotated[str | None, typer.Option(help="The agent that carries plans out, where it is another one.")]
Executors = Annotated[int | None, typer.Option(metavar="K", help="Solutions at a time, on different files; 1.")]
OneBranch = Annotated[bool, typer.Option("--one-branch", help="One branch and pull request, a commit for each.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="New sessions for each issue; else they go on.")]
PlansAhead = Annotated[int | None, typer.Option(metavar="N", help="Plans that may wait for an executor; 5.")]
PlanSeconds = Annotated[float | None, typer.Option(metavar="S", help="The most that a plan may take; 300.")]
ExecutionSeconds = Annotated[
    float | None, typer.Option(metavar="S", help="The most that carrying one out may take; 600.")
]
ContextTokens = Annotated[
    int | None, typer.Option(metavar="N", help="A longer session is summarised, and a new one begins; 120000.")
]
PipelineId = Annotated[str | None, typer.Option("--id", help="The pipeline's id; one is made otherwise.")]
Decision = Literal["pause", "resume", "skip", "replan", "stop", "cancel"]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for its end; 0 only if every issue is completed.")]


@app.callback(invoke_without_command=True)
def pipeline(
    context: typer.Context,
    repo: OptionalRepo = None,
    issues: Numbers = None,
    label: Label = None,
    file: IssuesFile = None,
    agent: given.Agent = None,
    planner: Planner = None,
    executor: Executor = None,
    model: given.Model = None,
    base: given.Base = None,
    project: given.Project = None,
    executors: Executors = None,
    one_branch: OneBranch = False,
    fresh: Fresh = False,
    plans_ahead: PlansAhead = None,
    plan_seconds: PlanSeconds = None,
    execution_seconds: ExecutionSeconds = None,
    context_tokens: ContextTokens = None,
    draft: given.Draft = False,
    pipeline_id: PipelineId = None,
    wait: Wait = False,
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Work on many issues: one agent plans them ahead, another one carries the plans out.

    Example: septet pipeline --repo https://github.com/o/r --issues 1,2,3 --wait
    """
    if context.invoked_subcommand is not None:
        _refuse_before(context)
        return
    from clients.cli import pipeline_answers

    choice = {
        "label": label, "agent": agent, "planner": planner, "executor": executor, "model": model, "base": base,
        "project": project, "executors": executors, "one_branch": one_branch, "fresh": fresh,
        "plans_ahead": plans_ahead, "plan_seconds": plan_seconds, "execution_seconds": execution_seconds,
        "context_tokens": context_tokens, "draft": draft,
    }  # fmt: skip
    wanted = pipeline_answers.Wanted(repo, issues, file, choice)
    pipeline_answers.start(wanted, pipeline_id=pipeline_id, wait=wait, address=address, as_json=as_json)


@app.command()
def show(pipeline_id: Id, address: given.Address = None, as_json: given.Json = False) -> None:
    """Show one pipeline: where each issue is, with its commit, pull request and reason.

    Example: septet pipeline show pl-1f0c9a2b
    """
    from clients.cli import pipeline_answers

    pipeline_answers.show(pipeline_id, address=address, as_json=as_json)


@app.command("list")
def list_(
    after: Annotated[str, typer.Option(metavar="NEXT", help="The `next` of the page before.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The most pipelines of a page.")] = 50,
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """List the pipelines, open ones first.

    Example: septet pipeline list
    """
    from clients.cli import pipeline_answers

    pipeline_answers.list_(after=after, limit=limit, address=address, as_json=as_json)


@app.command()
def results(pipeline_id: Id, address: given.Address = None, as_json: given.Json = False) -> None:
    """Show what was planned and what was carried out so far, as two JSON documents.

    Example: septet pipeline results pl-1f0c9a2b --json
    """
    from clients.cli import pipeline_answers

    pipeline_answers.results(pipeline_id, address=address, as_json=as_json)


@app.command()
def report(pipeline_id: Id, address: given.Address = None, as_json: given.Json = False) -> None:
    """Show the report on a pipeline that is over, as Markdown.

    Example: septet pipeline report pl-1f0c9a2b > report.md
    """
    from clients.cli import pipeline_answers

    pipeline_answers.report(pipeline_id, address=address, as_json=as_json)


@app.command()
def pause(
    pipeline_id: Id, why: given.Why = "", address: given.Address = None, as_json: given.Json = False
) -> None:
    """Begin nothing new until it is resumed; what is under way goes on.

    Example: septet pipeline pause pl-1f0c9a2b
    """
    _decide(pipeline_id, "pause", "", why, address, as_json=as_json)


@app.command()
def resume(
    pipeline_id: Id, why: given.Why = "", address: given.Address = None, as_json: given.Json = False
) -> None:
    """Go on after a pause.

    Example: septet pipeline resume pl-1f0c9a2b
    """
    _decide(pipeline_id, "resume", "", why, address, as_json=as_json)


@app.command()
def skip(
    pipeline_id: Id,
    issue: Issue,
    why: given.Why = "",
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Skip an issue that is not under way; what depends on it is skipped as well.

    Example: septet pipeline skip pl-1f0c9a2b 42 --why 'done by hand'
    """
    _decide(pipeline_id, "skip", issue, why, address, as_json=as_json)


@app.command()
def replan(
    pipeline_id: Id,
    issue: Issue,
    why: Annotated[str, typer.Option(help="What the planner is told.")] = "",
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Have an issue planned again that is planned and not carried out yet.

    Example: septet pipeline replan pl-1f0c9a2b 42 --why 'Leave the schema as it is.'
    """
    _decide(pipeline_id, "replan", issue, why, address, as_json=as_json)


@app.command()
def stop(pipeline_id: Id, why: given.Why = "", address: given.Address = None, as_json: given.Json = False) -> None:
    """Carry what is under way to its end, and begin nothing else.

    Example: septet pipeline stop pl-1f0c9a2b
    """
    _decide(pipeline_id, "stop", "", why, address, as_json=as_json)


@app.command()
def cancel(
    pipeline_id: Id, why: given.Why = "", address: given.Address = None, as_json: given.Json = False
) -> None:
    """End both agents and the work orders under way, each with its work in a rescue.

    Example: septet pipeline cancel pl-1f0c9a2b
    """
    _decide(pipeline_id, "cancel", "", why, address, as_json=as_json)


def _decide(
    pipeline_id: str, decision: Decision, issue: str, why: str, address: str | None, *, as_json: bool
) -> None:
    from clients.cli import pipeline_answers

    pipeline_answers.decide(pipeline_id, decision, issue, why, address=address, as_json=as_json)


def _refuse_before(context: typer.Context) -> None:
    """Refuse options of the start before a command's name: they would count for nothing."""
    sources = [context.get_parameter_source(name) for name in context.params]
    if any(source is not None and source.name == "COMMANDLINE" for source in sources):
        message = f"options that start a pipeline stand before `{context.invoked_subcommand}`"
        raise typer.BadParameter(message, ctx=context)
