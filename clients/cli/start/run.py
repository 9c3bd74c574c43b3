"""The commands `run`, which starts a work order, and `create`, which puts one on the board."""

import asyncio
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from clients.cli.commands import load
from clients.cli.render.dry_run import show_dry_run
from clients.cli.render.task_reply import reply_at_end, reply_of_task, show_new_order
from clients.cli.start.options import CreateOptions, IssueOptions, RunOptions
from clients.cli.terminal.output import notify
from clients.cli.terminal.reply import CommandReply
from clients.operations.operations import Operations
from clients.starting.checks import one_of
from clients.starting.checks import reviews_of as issues_in_review
from clients.starting.repository_path import RepositoryReference, issue_number, parse_reference, repository_here
from clients.starting.tracked_issue import check_unread_order, tracker_key, with_issue_of_page
from septet.contracts.names import Step
from septet.contracts.order import TEXT_LIMIT_BYTES, StepSettings, WorkOrderInput
from septet.contracts.wording import find_odd_text, reason_of
from septet.errors import GitError, InvalidInputError, NotFoundError, SeptetError, UsageError
from septet.git.engine.engine import Git
from septet.git.engine.place import check_order_id
from septet.settings import load_settings
from workers.connection.connection import is_loopback, server_address

_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_OPTION_OF: Final = {"repository": "--repo", "description": "--body", "labels": "--label"}
"""The names of the options by the names of the input's fields, where the two differ."""
_NO_TEXT: Final = "Give a text file in UTF-8, whose first line is the title."


def order_input(options: RunOptions | CreateOptions) -> WorkOrderInput:
    """Return the input of a work order from the command's options.

    Raises:
        UsageError: The repository or the issue is not clear, or `--step` is not `STEP.KEY=VALUE`.
        InvalidInputError: A value is wrong; the message names the option.
        NotFoundError: The issue's file cannot be read.
    """
    stage = options.stage if isinstance(options, CreateOptions) else None
    fields = {**_work_fields(options.target, options.repo, options.issue), "stage": stage, **asdict(options.order)}
    fields |= {"labels": fields.pop("label"), "steps": _step_settings(fields.pop("step") or ())}
    del fields["id"]
    try:
        return WorkOrderInput.model_validate_json(
            json.dumps({name: value for name, value in fields.items() if value is not None}), extra="forbid"
        )
    except ValidationError as error:
        raise _wrong_option(find_odd_text(fields) or error.errors()[0]) from error


def _work_fields(target: str | None, repo: str | None, issue: IssueOptions) -> dict[str, Any]:
    """Return the input's fields that name the repository and the issue; a tracker's issue is not read yet."""
    if not (key := tracker_key(target or "")):
        reference = _reference(target, repo)
        return {"repository": reference.repository, **_issue_fields(issue, reference, target)}
    if any(option is not None for option in asdict(issue).values()):
        raise UsageError("Several issues are named.", remedy=f"Leave out all but the address of {key}.")
    fields = with_issue_of_page({"repository": target})
    return fields if repo is None else {**fields, "repository": _reference(None, repo).repository}


def _reference(target: str | None, repo: str | None) -> RepositoryReference:
    """Return the named repository and issue; if no repository is named, use that of the current folder."""
    number = issue_number(target or "")
    if number is not None:
        return replace(_reference(None, repo), issue=number)
    if target is not None and repo is not None:
        raise UsageError(f"Two repositories are named: {target} and {repo}.", remedy="Leave one of them out.")
    named = target if target is not None else repo
    if named is not None:
        return parse_reference(named)
    return RepositoryReference(repository_here("septet run PATH-OR-ADDRESS …, or the address of an issue"))


def _wrong_option(error: Mapping[str, Any]) -> InvalidInputError:
    """Return the error for a wrong option, with the reason and, for a wrong name, a similar name."""
    name = str(error["loc"][0]) if error["loc"] else ""
    option = _OPTION_OF.get(name, f"--{name.replace('_', '-')}" if name else "")
    reason, remedy = reason_of(error), ""
    if name == "steps":
        parts = [str(part) for part in error["loc"][1:] if part != "[key]"]
        option = f"--step {'.'.join(parts)}"
        if error["loc"][-1] == "[key]":
            reason, remedy = "names no step", one_of(parts[0], Step)
        elif error["type"] == "extra_forbidden":
            reason, remedy = "is not a setting of a step", one_of(parts[-1], StepSettings.model_fields)
    message = f"{option} {reason}." if option else f"{reason[:1].upper()}{reason[1:]}."
    return InvalidInputError(message, remedy=remedy)


def _issue_fields(issue: IssueOptions, reference: RepositoryReference, target: str | None) -> dict[str, Any]:
    number = issue.issue if issue.issue is not None else reference.issue
    given_ways = [number is not None, issue.issue_file is not None, issue.title is not None]
    if sum(given_ways) != 1 or (issue.body is not None and issue.title is None):
        ways = "the address of an issue, --issue N, --issue-file FILE, or --title TEXT with --body TEXT"
        remedy = f"Give one of: {ways}."
        problem = "Several issues are named." if sum(given_ways) > 1 else "No issue is named."
        if target is not None and " " in target.strip() and not any(given_ways):
            problem = f"No issue is named: {target!r} was taken for a repository."
            remedy = f"If it says what to do: --title {shlex.quote(target)}. {remedy}"
        raise UsageError(problem, remedy=remedy)
    if number is not None:
        return {"issue": number}
    title, body = (issue.title, issue.body) if issue.issue_file is None else _read_issue(issue.issue_file)
    if not (title or "").strip():
        raise InvalidInputError("--title is empty.", remedy="Say in a few words what is wrong or wanted.")
    return {"title": title, "description": body or ""}


def _read_issue(path: Path) -> tuple[str, str]:
    try:
        with path.open("rb") as file:
            content = file.read(TEXT_LIMIT_BYTES + 1)
    except OSError as error:
        raise NotFoundError(f"--issue-file {path}: {error.strerror}.", remedy="Name a text file.") from error
    try:
        text = content[:TEXT_LIMIT_BYTES].decode(errors="strict" if len(content) <= TEXT_LIMIT_BYTES else "ignore")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"--issue-file {path} is not a text file.", remedy=_NO_TEXT) from error
    text = text.removeprefix("\ufeff").strip()
    if "\0" in text:
        raise InvalidInputError(f"--issue-file {path} is not a text file.", remedy=_NO_TEXT)
    if len(content) > TEXT_LIMIT_BYTES:
        remedy = "Put the text into an issue of the forge, or a file of the repository, and name it here."
        raise InvalidInputError(f"--issue-file {path} has more than {TEXT_LIMIT_BYTES:,} bytes.", remedy=remedy)
    if not text:
        remedy = "Write the title on its first line, and the text below it."
        raise InvalidInputError(f"--issue-file {path} is empty.", remedy=remedy)
    title, _, body = text.partition("\n")
    return title.lstrip("# ").strip(), body.strip()


def _step_settings(settings: Sequence[str]) -> dict[str, dict[str, object]]:
    """Return the values of `STEP.KEY=VALUE` by step and key; unknown steps and keys are not checked here."""
    steps: dict[str, dict[str, object]] = {}
    for setting in settings:
        where, equals, value = setting.partition("=")
        step, dot, key = where.partition(".")
        if not (equals and dot and step and key and value):
            remedy = "Write it as --step STEP.KEY=VALUE, such as --step implement_plan.model=opus."
            raise UsageError(f"--step {setting} is not understood.", remedy=remedy)
        steps.setdefault(step, {})[key] = json.loads(value) if _NUMBER.fullmatch(value) else value
    return steps


_NAMES_SHOWN: Final = 5


async def run(options: RunOptions) -> CommandReply:
    """Start a work order: an issue becomes a pull request."""
    unread = _checked_input(options)
    operations = await options.server.connect()
    new, order_id = await operations.starting.find_order(unread, options.order.id, again=options.again)
    if options.dry_run:
        dry_run = load("clients.operations.dry_run:dry_run")  # imported only for a dry run
        plan = await dry_run(operations, new, order_id, load_settings(), again=options.again)
        return CommandReply.from_reply(plan, lambda: show_dry_run(plan))
    if options.server.as_json:
        answer = await operations.starting.start(new, order_id, again=options.again)
        if reviews := await reviews_of(operations, new.repository, (new.issue,)):
            notify(reviews)
        return await reply_at_end(operations, answer, wait=options.wait, as_json=True)
    notice = asyncio.create_task(_notice(operations, new))
    task, estimate = await operations.starting.begin(new, order_id, again=options.again)
    return await show_new_order(operations, task, estimate, notice, wait=options.wait)


async def create(options: CreateOptions) -> CommandReply:
    """Put a work order on the board; it starts later."""
    new = _checked_input(options)
    operations = await options.server.connect()
    return reply_of_task(await operations.starting.start(new, options.order.id, again=options.again))


def _checked_input(options: RunOptions | CreateOptions) -> WorkOrderInput:
    """Return a new work order's input, after all checks that need no server."""
    order = order_input(options)
    if options.order.id is not None:
        check_order_id(options.order.id)
    settings = load_settings()
    check_unread_order(order, settings, is_here=is_loopback(server_address(settings, options.server.address)))
    return order


async def _notice(operations: Operations, order: WorkOrderInput) -> str:
    """Return the notices on a new work order: reviews, uncommitted changes and unlimited agents."""
    reviews, changes = await asyncio.gather(
        reviews_of(operations, order.repository, (order.issue,)),
        asyncio.to_thread(uncommitted_changes, Path(order.repository)),
    )
    uncommitted = ""
    if changes:  # the agent will not see them
        names = ", ".join(changes[:_NAMES_SHOWN]) + (", …" if len(changes) > _NAMES_SHOWN else "")
        count = f"{len(changes)} uncommitted change{'s' * (len(changes) != 1)}"
        uncommitted = f"Not included: {count} in {order.repository} ({names}). Commit to include them."
    unlimited = load("clients.starting.unlimited:find_unlimited")(order)  # its imports come after the id
    return "\n".join(filter(None, (reviews, uncommitted, unlimited)))


async def reviews_of(operations: Operations, repository: str, issues: Iterable[int | None]) -> str:
    """Return a notice on issues with a pull request in review; empty if there are none, or on an error."""
    with suppress(SeptetError):
        return await issues_in_review(operations.orders, repository, [each for each in issues if each is not None])
    return ""


def uncommitted_changes(path: Path) -> list[str]:
    """Return the changed files of a checkout that are not committed; empty if git cannot report them."""
    if not path.is_absolute() or not (path / ".git").is_dir():
        return []
    try:
        git = Git(path / ".git", path, load_settings().git_env)
        printed = git.run("status", "--porcelain", "-z", "--untracked-files=normal")
    except GitError:
        return []
    entries = printed.decode("utf-8", "replace").split("\0")
    names, at = [], 0
    while at < len(entries) and entries[at]:
        names.append(entries[at][3:])
        at += 2 if entries[at][0] in "RC" else 1  # the old name follows
    return names
