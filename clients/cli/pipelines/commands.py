"""`septet pipeline`: plan and implement many issues."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from pydantic import ValidationError

from clients.cli.pipelines.options import (
    DecideOnPipelineOptions,
    OnePipelineOptions,
    PipelineOptions,
    PipelinesOptions,
    ReplanOptions,
    SkipOptions,
    StartPipelineOptions,
)
from clients.cli.pipelines.rendering import (
    follow_pipeline,
    next_commands,
    show_list,
    show_pipeline,
    show_report,
    show_results,
)
from clients.cli.render.dry_run import show_pipeline_dry_run
from clients.cli.render.work_order import show_commands, show_estimate
from clients.cli.start.run import reviews_of
from clients.cli.terminal.console import console
from clients.cli.terminal.output import notify
from clients.cli.terminal.reply import CommandReply
from clients.pipelines.client import PipelineDecision
from clients.starting.repository_path import repository_here, whole_path
from septet.contracts.wording import find_odd_text, reason_of
from septet.errors import InvalidInputError, SeptetError, UsageError
from septet.pipelines.inputs import PipelineInput
from septet.pipelines.issues import read_issue_file
from septet.pipelines.views import IssueStatus, PipelineReply, PipelineStatus, PipelineView
from septet.settings import load_settings
from septet.system.text import name_some


def pipeline_input(options: PipelineOptions) -> PipelineInput:
    """Return the input of a pipeline from the command's options.

    Raises:
        UsageError: The repository or the issues are not clear.
        NotFoundError: The file with the issues cannot be read.
        InvalidInputError: A value is wrong; the message names the option.
    """
    if sum(way is not None for way in (options.issues, options.label, options.file)) != 1:
        remedy = "Give one of --issues N,N,…, --label L, or --file F."
        raise UsageError("It is not clear which issues are meant.", remedy=remedy)
    fields = {name: value for name, value in asdict(options).items() if value is not None}
    for name in ("repo", "issues", "file", "id"):
        fields.pop(name, None)
    fields["repository"] = whole_path(options.repo) if options.repo else repository_here("--repo REPO")
    if options.issues is not None:
        fields["issues"] = _numbers(options.issues)
    if options.file is not None:
        fields["issues"] = [issue.model_dump(mode="json") for issue in read_issue_file(options.file)]
    try:
        return PipelineInput.model_validate_json(json.dumps(fields), extra="forbid")
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        raise InvalidInputError(_wrong_option(find_odd_text(fields) or details[0])) from error


def _numbers(text: str) -> list[int]:
    parts = [part.strip().removeprefix("#") for part in text.split(",")]
    wrong = next((part for part in parts if not (part.isascii() and part.isdigit() and int(part))), None)
    if wrong is not None:
        remedy = "Write the numbers with commas between them: --issues 1,2,3. Texts come with --file."
        message = f"--issues: {wrong!r} is not the number of an issue." if wrong else "--issues is empty."
        raise UsageError(message, remedy=remedy)
    return [int(part) for part in parts]


def _wrong_option(error: Mapping[str, Any]) -> str:
    """Return a message that names the wrong option and the reason."""
    reason = reason_of(error)
    if not error["loc"]:
        return f"The options do not fit together: {reason}."
    name = str(error["loc"][0])
    option = "--repo" if name == "repository" else f"--{name.replace('_', '-')}"
    return f"{option} {reason}."


class PipelineFailedError(SeptetError):
    """Not every issue of the pipeline was completed."""


async def pipeline(options: StartPipelineOptions) -> CommandReply:
    """Work on many issues: one agent plans them, another implements the plans."""
    order = pipeline_input(options.pipeline)
    operations = await options.server.connect()
    if options.dry_run:
        plan = await operations.for_pipelines.dry_run(order, load_settings())
        return CommandReply.from_reply(plan, lambda: show_pipeline_dry_run(plan))
    answer = await operations.for_pipelines.start(order, options.pipeline.id)
    if reviews := await reviews_of(operations, order.repository, [issue.number for issue in order.issue_list]):
        notify(reviews)
    if not options.wait:
        return _reply(answer)
    if not options.server.as_json:
        _show_estimate(answer)
    last = await follow_pipeline(operations, answer.pipeline.id, as_json=options.server.as_json)
    at_end = answer.model_copy(update={"pipeline": last})
    return _reply(at_end, failure_of(last), is_at_end=True)


async def show(options: OnePipelineOptions) -> CommandReply:
    """Show one pipeline: where each issue is, with its commit, pull request and reason."""
    operations = await options.server.connect()
    return _reply(await operations.for_pipelines.show(options.pipeline_id))


async def list_pipelines(options: PipelinesOptions) -> CommandReply:
    """List the pipelines, open ones first."""
    operations = await options.server.connect()
    answer = await operations.pipelines.list(after=options.after, limit=options.limit)
    return CommandReply.from_reply(answer, lambda: show_list(answer))


async def results(options: OnePipelineOptions) -> CommandReply:
    """Show what was planned and what was carried out so far, as two JSON documents."""
    operations = await options.server.connect()
    answer = await operations.pipelines.results(options.pipeline_id)
    return CommandReply.from_reply(answer, lambda: show_results(answer))


async def report(options: OnePipelineOptions) -> CommandReply:
    """Show the report on a pipeline that is over, as Markdown."""
    operations = await options.server.connect()
    answer = await operations.pipelines.report(options.pipeline_id)
    return CommandReply.from_reply(answer, lambda: show_report(answer.markdown))


async def _decide(
    decision: PipelineDecision, options: DecideOnPipelineOptions | SkipOptions | ReplanOptions
) -> CommandReply:
    issue = "" if isinstance(options, DecideOnPipelineOptions) else options.issue
    operations = await options.server.connect()
    user = load_settings().user
    return _reply(await operations.pipelines.decide(options.pipeline_id, decision, issue, user, options.why))


pause = partial(_decide, "pause")
resume = partial(_decide, "resume")
stop = partial(_decide, "stop")
cancel = partial(_decide, "cancel")
skip = partial(_decide, "skip")
replan = partial(_decide, "replan")


def failure_of(view: PipelineView) -> PipelineFailedError | None:
    """Return the error that a pipeline's command ends with; `None` if every issue completed."""
    unfinished = [issue for issue in view.issues if issue.status is not IssueStatus.COMPLETED]
    if view.status is PipelineStatus.COMPLETED and not unfinished:
        return None
    if view.error is not None:
        return PipelineFailedError(view.error.message, remedy=view.error.remedy)
    names = name_some([f"{issue.issue_id} ({issue.status.value})" for issue in unfinished], 10)
    message = f"{view.id} is {view.status.value}; not completed: {names or 'nothing'}."
    return PipelineFailedError(message, remedy=f"See why with `septet pipeline show {view.id}`.")


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
