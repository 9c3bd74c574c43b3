"""Commands about work orders: start one, look at them."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from clients.cli import tables
from clients.cli.reply import Reply, reply
from clients.operations import Operations, connected
from clients.repository_path import whole_path
from septet.contracts.names import Status
from septet.contracts.order import TEXT_LIMIT_BYTES, WorkOrderInput
from septet.contracts.replies import TaskReply
from septet.contracts.task import Task
from septet.errors import InvalidInputError, NotFoundError, SeptetError, UsageError
from septet.settings import load_settings

_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_OPTION_OF: Final = {
    "repository": "--repo",
    "issue": "--issue",
    "description": "--body",
    "order_id": "--id",
    "labels": "--label",
}


class WorkOrderFailedError(SeptetError):
    """The work order did not come to a pull request."""


@dataclass(frozen=True, slots=True)
class IssueText:
    """An issue as the command line gives it: a number, a file, or a title and a body."""

    number: int | None = None
    file: Path | None = None
    title: str | None = None
    body: str | None = None

    def fields(self) -> dict[str, Any]:
        """Return the fields of the work order's input.

        Raises:
            UsageError: None of them is given, or more than one.
            InvalidInputError: The file cannot be read, is empty or is too large.
        """
        given = [self.number is not None, self.file is not None, self.title is not None]
        if sum(given) != 1 or (self.body is not None and self.title is None):
            remedy = "Give one of --issue N, --issue-file F, or --title T with --body B."
            raise UsageError("It is not clear which issue is meant.", remedy=remedy)
        if self.number is not None:
            return {"issue": self.number}
        title, body = (self.title, self.body) if self.file is None else _read_issue(self.file)
        return {"title": title, "description": body or ""}


def run(  # noqa: PLR0913 -- the options of the command, by name
    repo: str,
    issue: IssueText,
    choice: Mapping[str, Any],
    *,
    order_id: str | None,
    wait: bool,
    address: str | None,
    as_json: bool,
) -> None:
    """Start a work order, and wait for its end where that is asked."""

    async def work(operations: Operations) -> Reply:
        steps = _step_settings(choice.get("steps") or ())
        order = _checked({"repository": whole_path(repo), **issue.fields(), **choice, "steps": steps})
        return await answer_of(operations, await operations.run(order, order_id), wait=wait)

    with_operations(work, address=address, as_json=as_json)


def show(order_id: str, *, address: str | None, as_json: bool) -> None:
    """Show one work order with its agent runs and its history."""

    async def work(operations: Operations) -> Reply:
        detail = await operations.detail(order_id)
        runs = detail.task.status is Status.RUNNING and not as_json
        running = await operations.orders.running_step(order_id) if runs else ""
        return Reply.of(detail, lambda: tables.show_task(detail.task, running, detail.waiting_for))

    with_operations(work, address=address, as_json=as_json)


def steps(order_id: str, *, address: str | None, as_json: bool) -> None:
    """Show the steps of one work order."""

    async def work(operations: Operations) -> Reply:
        answer = await operations.steps(order_id)
        return Reply.of(answer, lambda: tables.show_steps(answer.steps))

    with_operations(work, address=address, as_json=as_json)


def board(project: str | None, *, after: str, limit: int, address: str | None, as_json: bool) -> None:
    """Show a page of the work orders by stage; `after` is the `next` of the page before."""

    async def work(operations: Operations) -> Reply:
        answer = await operations.board(project, after=after, limit=limit)
        return Reply.of(answer, lambda: tables.show_board(answer))

    with_operations(work, address=address, as_json=as_json)


def with_operations(work: Callable[[Operations], Awaitable[Reply]], *, address: str | None, as_json: bool) -> None:
    """Do a command's work with the server of the settings, and answer."""

    async def answered() -> Reply:
        return await work(await connected(load_settings(), address))

    reply(answered, as_json=as_json)


async def answer_of(operations: Operations, begun: TaskReply, *, wait: bool) -> Reply:
    """Return a work order, after its end where that is waited for: then only a completed one is a success."""
    answer = TaskReply(task=await operations.orders.wait(begun.task.id)) if wait else begun
    task, failed = answer.task, failure_of(answer.task) if wait else None
    return Reply.of(answer, lambda: tables.show_task(task, with_error=failed is None), failed)


def failure_of(task: Task) -> WorkOrderFailedError | None:
    """Return why a closed work order is no success; `None` where it is one."""
    if task.status is Status.COMPLETED:
        return None
    message = task.error.message if task.error else f"{task.id} is {task.status.value}."
    remedy = task.error.remedy if task.error else f"Look at it with `septet show {task.id}`."
    return WorkOrderFailedError(message, remedy=remedy)


def _step_settings(given: Sequence[str]) -> dict[str, dict[str, object]]:
    """Read `STEP.KEY=VALUE`; whether there is such a step and key, the work order's input says.

    Raises:
        UsageError: One of them has another form.
    """
    steps: dict[str, dict[str, object]] = {}
    for setting in given:
        where, equals, value = setting.partition("=")
        step, dot, key = where.partition(".")
        if not (equals and dot and step and key and value):
            remedy = "Write it as --step STEP.KEY=VALUE, such as --step implement_plan.model=opus."
            raise UsageError(f"--step {setting} is not understood.", remedy=remedy)
        steps.setdefault(step, {})[key] = json.loads(value) if _NUMBER.fullmatch(value) else value
    return steps


def _checked(fields: Mapping[str, Any]) -> WorkOrderInput:
    try:
        given = {key: value for key, value in fields.items() if value is not None}
        return WorkOrderInput.model_validate_json(json.dumps(given), extra="forbid")
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        option = _OPTION_OF.get(name, f"--{name.replace('_', '-')}" if name else "the input")
        if name == "steps":
            option = f"--step {'.'.join(str(part) for part in first['loc'][1:] if part != '[key]')}"
        said = first["msg"].removeprefix("Value error, ")
        raise InvalidInputError(f"{option}: {said}.") from error


def _read_issue(path: Path) -> tuple[str, str]:
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
