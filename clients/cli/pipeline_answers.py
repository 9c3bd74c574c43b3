"""What the commands of `septet pipeline` answer."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ValidationError
from rich.live import Live

from clients._pipeline_asked import OVER
from clients.cli import pipeline_tables, tables
from clients.cli.orders import with_operations
from clients.cli.reply import Reply
from clients.operations import Operations
from clients.pipeline_operations import PipelineDecision
from clients.repository_path import whole_path
from septet.contracts.pipeline import PipelineInput
from septet.contracts.pipeline_replies import PipelineReply
from septet.contracts.pipeline_view import IssueStatus, PipelineStatus, PipelineView
from septet.errors import InvalidInputError, SeptetError, UsageError
from septet.pipelines.issues import read_issue_file
from septet.settings import load_settings

_LOOK_SECONDS: Final = 1.0
_NAMED: Final = 10


class PipelineFailedError(SeptetError):
    """Not every issue of the pipeline was completed."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A pipeline as the command line gives it."""

    repo: str | None
    numbers: str | None
    """Such as `1,2,3`."""
    file: Path | None
    choice: Mapping[str, Any]
    """All other fields of the input."""

    def order(self) -> PipelineInput:
        """Return the pipeline's input.

        Raises:
            UsageError: It is not clear which repository or which issues are meant.
            NotFoundError: The file cannot be read.
            InvalidInputError: A value is wrong; the message names the option.
        """
        if self.repo is None:
            raise UsageError("--repo is missing.", remedy="Name the repository: a path, or an address.")
        given = [self.numbers is not None, self.file is not None, self.choice.get("label") is not None]
        if sum(given) != 1:
            remedy = "Give one of --issues N,N,…, --label L, or --file F."
            raise UsageError("It is not clear which issues are meant.", remedy=remedy)
        fields = {key: value for key, value in self.choice.items() if value is not None}
        fields["repository"] = whole_path(self.repo)
        if self.numbers is not None:
            fields["issues"] = _numbers(self.numbers)
        if self.file is not None:
            fields["issues"] = [each.model_dump(mode="json") for each in read_issue_file(self.file)]
        try:
            order = PipelineInput.model_validate_json(json.dumps(fields), extra="forbid")
        except ValidationError as error:
            raise InvalidInputError(_said(error)) from error
        return order


def start(wanted: Wanted, *, pipeline_id: str | None, wait: bool, address: str | None, as_json: bool) -> None:
    """Start a pipeline, and show how it goes until its end where that is asked."""

    async def work(operations: Operations) -> Reply:
        begun = await operations.pipelines.start(wanted.order(), pipeline_id)
        if not wait:
            return _told(begun)
        last = await _waited(operations, begun.pipeline.id, as_json=as_json)
        failed = failure_of(last)
        return Reply.of(PipelineReply(pipeline=last), lambda: pipeline_tables.show(last), failed)

    with_operations(work, address=address, as_json=as_json)


def show(pipeline_id: str, *, address: str | None, as_json: bool) -> None:
    """Show one pipeline."""

    async def work(operations: Operations) -> Reply:
        return _told(await operations.pipelines.show(pipeline_id))

    with_operations(work, address=address, as_json=as_json)


def list_(*, after: str, limit: int, address: str | None, as_json: bool) -> None:
    """List the pipelines."""

    async def work(operations: Operations) -> Reply:
        answer = await operations.pipelines.list(after=after, limit=limit)
        return Reply.of(answer, lambda: pipeline_tables.show_list(answer))

    with_operations(work, address=address, as_json=as_json)


def results(pipeline_id: str, *, address: str | None, as_json: bool) -> None:
    """Show both documents of a pipeline's results."""

    async def work(operations: Operations) -> Reply:
        answer = await operations.pipelines.results(pipeline_id)
        return Reply.of(answer, lambda: pipeline_tables.show_results(answer))

    with_operations(work, address=address, as_json=as_json)


def report(pipeline_id: str, *, address: str | None, as_json: bool) -> None:
    """Show a pipeline's report."""

    async def work(operations: Operations) -> Reply:
        answer = await operations.pipelines.report(pipeline_id)
        return Reply.of(answer, lambda: pipeline_tables.show_report(answer.markdown))

    with_operations(work, address=address, as_json=as_json)


def decide(  # noqa: PLR0913 -- the options of the command, by name
    pipeline_id: str,
    decision: PipelineDecision | Literal["cancel"],
    issue: str,
    why: str,
    *,
    address: str | None,
    as_json: bool,
) -> None:
    """Carry out a person's decision."""

    async def work(operations: Operations) -> Reply:
        asked, who = operations.pipelines, load_settings().user
        if decision == "cancel":
            return _told(await asked.cancel(pipeline_id, who, why))
        return _told(await asked.decide(pipeline_id, decision, issue, who, why))

    with_operations(work, address=address, as_json=as_json)


def failure_of(view: PipelineView) -> PipelineFailedError | None:
    """Return why a closed pipeline is no success; `None` where every issue is completed."""
    open_ends = [issue for issue in view.issues if issue.status is not IssueStatus.COMPLETED]
    if view.status is PipelineStatus.COMPLETED and not open_ends:
        return None
    if view.error is not None:
        return PipelineFailedError(view.error.message, remedy=view.error.remedy)
    named = ", ".join(f"{issue.issue_id} ({issue.status.value})" for issue in open_ends[:_NAMED])
    more = f" and {len(open_ends) - _NAMED} more" if len(open_ends) > _NAMED else ""
    message = f"{view.id} is {view.status.value}; not completed: {named or 'nothing'}{more}."
    return PipelineFailedError(message, remedy=f"See why with `septet pipeline show {view.id}`.")


async def _waited(operations: Operations, pipeline_id: str, *, as_json: bool) -> PipelineView:
    """Wait for a pipeline's end: to a terminal it is painted, to a pipe each change is a line."""
    if as_json:
        return await operations.pipelines.pipelines.wait(pipeline_id)
    out, looks = tables.console(), _looks(operations, pipeline_id)
    if not out.is_terminal:
        lines = pipeline_tables.Lines()
        async for view in looks:
            for line in lines.of(view):
                out.print(line, soft_wrap=True, markup=False)
        return view
    with Live(console=out, auto_refresh=False, transient=True) as live:
        async for view in looks:
            live.update(pipeline_tables.picture(view, out.height), refresh=True)
    return view


async def _looks(operations: Operations, pipeline_id: str) -> AsyncIterator[PipelineView]:
    """Yield a pipeline now and every second, and last when it is over."""
    while True:
        view = await operations.pipelines.pipelines.view(pipeline_id)
        yield view
        if view.status in OVER:
            return
        await asyncio.sleep(_LOOK_SECONDS)


def _told(answer: PipelineReply) -> Reply:
    return Reply.of(answer, lambda: pipeline_tables.show(answer.pipeline))


def _numbers(text: str) -> list[int]:
    found = [part.strip().removeprefix("#") for part in text.split(",")]
    wrong = next((part for part in found if not (part.isascii() and part.isdigit() and int(part))), None)
    if wrong is not None:
        remedy = "Write the numbers with commas between them: --issues 1,2,3. Texts come with --file."
        raise UsageError(f"--issues: {wrong or 'nothing'!r} is no issue's number.", remedy=remedy)
    return [int(part) for part in found]


def _said(error: ValidationError) -> str:
    """Say which option is wrong, and why."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    why = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        return f"The options do not fit together: {why}."
    name = str(first["loc"][0])
    option = "--repo" if name == "repository" else f"--{name.replace('_', '-')}"
    return f"{option}: {why}."
