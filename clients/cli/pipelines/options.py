"""The options of the commands about pipelines."""

from dataclasses import KW_ONLY
from pathlib import Path
from typing import Annotated, Final

from clients.cli.options import (
    SERVER,
    Limit,
    Next,
    Server,
    Why,
    argument,
    command_options,
    completed_by,
    option,
    option_group,
)
from clients.cli.start.options import Agent, Base, Budget, Draft, DryRun, FallbackAgent, Model, Project, PushTo

PipelineId = Annotated[
    str, argument(metavar="ID", help="The pipeline, such as pl-1f0c9a2b.", completer=completed_by("pipelines"))
]
PipelineIssue = Annotated[str, argument(metavar="ISSUE", help="The issue's id in the pipeline, such as 42.")]


@option_group
class PipelineOptions:
    """The issues of a pipeline and the choices for them; most options have the names of the input's fields."""

    repo: Annotated[
        str | None, option("--repo", metavar="REPO", help="The repository; by default the one of this folder.")
    ] = None
    issues: Annotated[
        str | None, option("--issues", metavar="N,N,…", help="Issues of the repository's forge.")
    ] = None
    label: Annotated[str | None, option(metavar="LABEL", help="The forge's open issues with this label.")] = None
    file: Annotated[
        Path | None, option("--file", metavar="FILE", help='JSON: [{"id", "title", "body", "depends_on"}, …].')
    ] = None
    agent: Agent = None
    planner: Annotated[str | None, option(metavar="AGENT", help="Another agent for the planning.")] = None
    executor: Annotated[str | None, option(metavar="AGENT", help="Another agent for the implementation.")] = None
    fallback_agent: FallbackAgent = None
    model: Model = None
    base: Base = None
    push_to: PushTo = None
    project: Project = None
    executors: Annotated[int | None, option(metavar="K", help="Parallel executors. [default: 1]")] = None
    one_branch: Annotated[
        bool, option("--one-branch", help="Put all issues into one pull request, a commit for each.")
    ] = False
    fresh: Annotated[
        bool, option("--fresh", help="Start a new session for each issue instead of continuing the last one.")
    ] = False
    plans_ahead: Annotated[
        int | None, option(metavar="N", help="Plans that may wait for an executor. [default: 5]")
    ] = None
    plan_seconds: Annotated[
        float | None, option(metavar="S", help="The time limit of one plan. [default: 300]")
    ] = None
    execution_seconds: Annotated[
        float | None, option(metavar="S", help="The time limit of one implementation. [default: 600]")
    ] = None
    context_tokens: Annotated[
        int | None, option(metavar="N", help="Summarise a longer session and begin a new one. [default: 120000]")
    ] = None
    draft: Draft = False
    budget: Budget = None
    id: Annotated[str | None, option("--id", metavar="ID", help="The pipeline's id. [default: a new one]")] = None


NO_OPTIONS: Final = PipelineOptions()


@command_options
class StartPipelineOptions:
    """The options of `septet pipeline`."""

    _: KW_ONLY
    pipeline: PipelineOptions = NO_OPTIONS
    wait: Annotated[
        bool, option("--wait", help="Wait until it ends; exit with 0 only if every issue is completed.")
    ] = False
    dry_run: DryRun = False
    server: Server = SERVER


@command_options
class OnePipelineOptions:
    """The options of the commands that show one pipeline."""

    pipeline_id: PipelineId
    _: KW_ONLY
    server: Server = SERVER


@command_options
class PipelinesOptions:
    """The options of `septet pipeline list`."""

    _: KW_ONLY
    after: Next = ""
    limit: Limit = 50
    server: Server = SERVER


@command_options
class DecideOnPipelineOptions:
    """The options of the commands that decide about a whole pipeline."""

    pipeline_id: PipelineId
    _: KW_ONLY
    why: Why = ""
    server: Server = SERVER


@command_options
class SkipOptions:
    """The options of `septet pipeline skip`."""

    pipeline_id: PipelineId
    issue: PipelineIssue
    _: KW_ONLY
    why: Why = ""
    server: Server = SERVER


@command_options
class ReplanOptions:
    """The options of `septet pipeline replan`."""

    pipeline_id: PipelineId
    issue: PipelineIssue
    _: KW_ONLY
    why: Annotated[str, option(metavar="TEXT", help="What the planner should do differently.")] = ""
    server: Server = SERVER
