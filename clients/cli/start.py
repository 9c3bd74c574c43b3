"""Commands that ask for work: `run` starts a work order, `create` puts one on the board."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from clients.cli import options as given
from clients.cli.reply import CommandReply
from septet.errors import InvalidInputError, NotFoundError, UsageError

if TYPE_CHECKING:
    from clients.operations import Operations
    from septet.contracts.order import WorkOrderInput

app = typer.Typer()
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_OPTION_OF: Final = {"repository": "--repo", "description": "--body", "labels": "--label"}
"""The input's fields that have other names than their options."""


@app.command()
@given.expand_options
@given.give_operations
async def run(
    operations: "Operations",
    *,
    repo: given.Repo,
    issue: given.IssueOptions,
    order: given.OrderOptions,
    wait: given.Wait = False,
    as_json: given.Json = False,
) -> CommandReply:
    """Start a work order.

    Example: septet run --repo https://github.com/o/r --issue 42 --wait --step implement_plan.model=opus
    """
    from clients.cli.task_reply import reply_at_end

    answer = await operations.orders.run(order_input(repo, issue, order), order.id)
    return await reply_at_end(operations, answer, wait=wait, as_json=as_json)


@app.command()
@given.expand_options
@given.give_operations
async def create(
    operations: "Operations",
    *,
    repo: given.Repo,
    issue: given.IssueOptions,
    stage: Annotated[
        Literal["collected", "triaged"], typer.Option(help="Wait for a person, or for its turn.")
    ] = "collected",
    order: given.OrderOptions,
) -> CommandReply:
    """Put a work order on the board: nothing is started before it is moved on, or has its turn.

    Example: septet create --repo . --title 'Totals are wrong' --priority 5 --after wo-41
    """
    from clients.cli.task_reply import reply_of_task

    return reply_of_task(await operations.orders.run(order_input(repo, issue, order, stage), order.id))


def order_input(
    repo: str, issue: given.IssueOptions, order: given.OrderOptions, stage: str | None = None
) -> "WorkOrderInput":
    """Return the work order's input.

    Raises:
        UsageError: It is not clear which issue is meant, or `--step` has another form.
        InvalidInputError: A value is wrong; the message names the option.
        NotFoundError: The issue's file cannot be read.
    """
    from pydantic import ValidationError

    from clients.repository_path import whole_path
    from septet.contracts.order import WorkOrderInput

    fields = {"repository": whole_path(repo), "stage": stage, **_issue_fields(issue), **asdict(order)}
    fields |= {"labels": fields.pop("label"), "steps": _step_settings(fields.pop("step") or ())}
    del fields["id"]
    try:
        return WorkOrderInput.model_validate_json(
            json.dumps({name: value for name, value in fields.items() if value is not None}), extra="forbid"
        )
    except ValidationError as error:
        raise InvalidInputError(_wrong_option(error.errors()[0])) from error


def _wrong_option(error: Mapping[str, Any]) -> str:
    """Say which option is wrong, and why."""
    name = str(error["loc"][0]) if error["loc"] else ""
    option = _OPTION_OF.get(name, f"--{name.replace('_', '-')}" if name else "the input")
    if name == "steps":
        option = f"--step {'.'.join(str(part) for part in error['loc'][1:] if part != '[key]')}"
    return f"{option}: {error['msg'].removeprefix('Value error, ')}."


def _issue_fields(issue: given.IssueOptions) -> dict[str, Any]:
    given_ways = [issue.issue is not None, issue.issue_file is not None, issue.title is not None]
    if sum(given_ways) != 1 or (issue.body is not None and issue.title is None):
        remedy = "Give one of --issue N, --issue-file F, or --title T with --body B."
        raise UsageError("It is not clear which issue is meant.", remedy=remedy)
    if issue.issue is not None:
        return {"issue": issue.issue}
    title, body = (issue.title, issue.body) if issue.issue_file is None else _read_issue(issue.issue_file)
    return {"title": title, "description": body or ""}


def _read_issue(path: Path) -> tuple[str, str]:
    from septet.contracts.order import TEXT_LIMIT_BYTES

    try:
        with path.open("rb") as file:
            content = file.read(TEXT_LIMIT_BYTES + 1)
    except OSError as error:
        raise NotFoundError(f"--issue-file {path}: {error.strerror}.") from error
    text = content.decode(errors="replace").removeprefix("\ufeff").strip()
    if not text:
        raise InvalidInputError(f"--issue-file {path} is empty.", remedy="Its first line is the title.")
    title, _, body = text.partition("\n")
    return title.lstrip("# ").strip(), body.strip()


def _step_settings(settings: Sequence[str]) -> dict[str, dict[str, object]]:
    """Read `STEP.KEY=VALUE`; whether there is such a step and key, the work order's input says."""
    steps: dict[str, dict[str, object]] = {}
    for setting in settings:
        where, equals, value = setting.partition("=")
        step, dot, key = where.partition(".")
        if not (equals and dot and step and key and value):
            remedy = "Write it as --step STEP.KEY=VALUE, such as --step implement_plan.model=opus."
            raise UsageError(f"--step {setting} is not understood.", remedy=remedy)
        steps.setdefault(step, {})[key] = json.loads(value) if _NUMBER.fullmatch(value) else value
    return steps
