"""Commands that create work orders: `run` starts a work order, `create` puts one on the board."""

import asyncio
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import ValidationError

from clients.cli import options as given
from clients.cli.options import option
from clients.cli.reply import CommandReply, tell
from clients.cli.server import SERVER, Server
from clients.cli.start_view import show_new_order
from clients.operations.operations import Operations
from clients.starting.checks import find_unlimited, one_of
from clients.starting.issues import reviews_of
from clients.starting.repository_path import RepositoryReference, issue_number, parse_reference, repository_here
from septet.contracts.limits import StepSettings
from septet.contracts.names import Step
from septet.contracts.order import TEXT_LIMIT_BYTES, WorkOrderInput
from septet.contracts.wording import find_odd_text, reason_of
from septet.errors import GitError, InvalidInputError, NotFoundError, SeptetError, UsageError
from septet.git.engine.engine import Git
from septet.git.workspace.record import check_order_id
from septet.settings import load_settings
from workers.connection.connection import is_loopback, server_address

_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_OPTION_OF: Final = {"repository": "--repo", "description": "--body", "labels": "--label"}
"""The options of input fields that have another name."""
_NAMES_SHOWN: Final = 5


async def run(
    target: given.Target = None,
    /,
    *,
    repo: given.AnyRepo = None,
    issue: given.IssueOptions = given.NO_ISSUE,
    order: given.OrderOptions = given.NO_CHOICES,
    again: given.Again = False,
    wait: given.Wait = False,
    only_tell: Annotated[bool, option("--dry-run", help="Show what would run, and start nothing.")] = False,
    server: Server = SERVER,
) -> CommandReply:
    """Start a work order: an issue becomes a pull request."""
    unread = order_input(target, repo, issue, order)
    _check_order(unread, order.id, server)
    operations = await server.connect()
    new, order_id = await operations.starting.find_order(unread, order.id, again=again)
    if only_tell:
        return await _reply_of_dry_run(operations, new, order_id, again=again)
    if server.as_json:
        from clients.cli.task_reply import reply_at_end  # imported late, so that the id appears sooner

        answer = await operations.starting.start(new, order_id, again=again)
        if told := await told_reviews(operations, new.repository, (new.issue,)):
            tell(told)
        return await reply_at_end(operations, answer, wait=wait, as_json=True)
    return await _start_before_people(operations, new, order_id, again=again, wait=wait)


async def _start_before_people(
    operations: Operations, order: WorkOrderInput, order_id: str | None, *, again: bool, wait: bool
) -> CommandReply:
    """Start a work order, and show its id as soon as the server has it; print notices after the id."""
    notice = asyncio.create_task(_notice(operations, order))
    task, estimate = await operations.starting.begin(order, order_id, again=again)
    return await show_new_order(operations, task, estimate, notice, wait=wait)


async def _reply_of_dry_run(
    operations: Operations, order: WorkOrderInput, order_id: str | None, *, again: bool
) -> CommandReply:

    from clients.cli.render.dry_run import show_dry_run  # as above
    from clients.operations.dry_run import dry_run

    answer = await dry_run(operations, order, order_id, load_settings(), again=again)
    return CommandReply.from_reply(answer, lambda: show_dry_run(answer))


async def create(
    target: given.Target = None,
    /,
    *,
    repo: given.AnyRepo = None,
    issue: given.IssueOptions = given.NO_ISSUE,
    stage: Annotated[
        Literal["collected", "triaged"], option(help="`collected` waits for you, `triaged` for its turn.")
    ] = "collected",
    order: given.OrderOptions = given.NO_CHOICES,
    again: given.Again = False,
    server: Server = SERVER,
) -> CommandReply:
    """Put a work order on the board; it starts later."""
    new = order_input(target, repo, issue, order, stage)
    _check_order(new, order.id, server)
    operations = await server.connect()
    from clients.cli.task_reply import reply_of_task  # as above

    return reply_of_task(await operations.starting.start(new, order.id, again=again))


def _check_order(order: WorkOrderInput, order_id: str | None, server: Server) -> None:
    """Check a new work order for mistakes, before any server is called."""
    from clients.starting.tracked_issue import check_unread_order  # as above

    if order_id is not None:
        check_order_id(order_id)
    settings = load_settings()
    check_unread_order(order, settings, is_here=is_loopback(server_address(settings, server.address)))


def order_input(
    target: str | None,
    repo: str | None,
    issue: given.IssueOptions,
    order: given.OrderOptions,
    stage: str | None = None,
) -> WorkOrderInput:
    """Return the work order's input.

    Raises:
        UsageError: The repository or the issue is not clear, or `--step` has another form.
        InvalidInputError: A value is wrong; the message names the option.
        NotFoundError: The issue's file cannot be read.
    """
    fields = {**_work_fields(target, repo, issue), "stage": stage, **asdict(order)}
    fields |= {"labels": fields.pop("label"), "steps": _step_settings(fields.pop("step") or ())}
    del fields["id"]
    try:
        return WorkOrderInput.model_validate_json(
            json.dumps({name: value for name, value in fields.items() if value is not None}), extra="forbid"
        )
    except ValidationError as error:
        raise _wrong_option(find_odd_text(fields) or error.errors()[0]) from error


def _work_fields(target: str | None, repo: str | None, issue: given.IssueOptions) -> dict[str, Any]:
    """Return the fields of the repository and the issue; an issue of a tracker is not read yet."""
    from clients.starting.tracked_issue import tracker_key, with_issue_of_page  # as above

    if not (key := tracker_key(target or "")):
        reference = _reference(target, repo)
        return {"repository": reference.repository, **_issue_fields(issue, reference, target)}
    if any(option is not None for option in asdict(issue).values()):
        raise UsageError("Several issues are named.", remedy=f"Leave out all but the address of {key}.")
    fields = with_issue_of_page({"repository": target})
    return fields if repo is None else {**fields, "repository": _reference(None, repo).repository}


def _reference(target: str | None, repo: str | None) -> RepositoryReference:
    """Return the named repository, else this folder's; a number such as `42` is an issue of the repository."""
    number = issue_number(target or "")
    if number is not None:
        return replace(_reference(None, repo), issue=number)
    if target is not None and repo is not None:
        raise UsageError(f"Two repositories are named: {target} and {repo}.", remedy="Leave one of them out.")
    named = target if target is not None else repo
    if named is not None:
        return parse_reference(named)
    return RepositoryReference(repository_here("septet run PATH-OR-ADDRESS …, or the address of an issue"))


async def _notice(operations: Operations, order: WorkOrderInput) -> str:
    """Return the notices on a new work order: reviews, uncommitted changes, unlimited agents; or nothing."""
    reviews, uncommitted = await asyncio.gather(
        told_reviews(operations, order.repository, (order.issue,)),
        asyncio.to_thread(_uncommitted_text, order.repository),
    )
    return "\n".join(filter(None, (reviews, uncommitted, find_unlimited(order))))


async def told_reviews(operations: Operations, repository: str, issues: Iterable[int | None]) -> str:
    """Return the issues that have a pull request in review already; nothing if the server does not answer."""
    with suppress(SeptetError):
        return await reviews_of(operations.orders, repository, [each for each in issues if each is not None])
    return ""


def _uncommitted_text(repository: str) -> str:
    """Return a notice of a checkout's uncommitted changes, which the agent will not see; or nothing."""
    from clients.cli.start import uncommitted_changes  # as above

    changes = uncommitted_changes(Path(repository))
    if not changes:
        return ""
    names = ", ".join(changes[:_NAMES_SHOWN]) + (", …" if len(changes) > _NAMES_SHOWN else "")
    count = f"{len(changes)} uncommitted change{'s' * (len(changes) != 1)}"
    return f"Not included: {count} in {repository} ({names}). Commit to include them."


def _wrong_option(error: Mapping[str, Any]) -> InvalidInputError:
    """Return the error for a wrong option with its reason; for an unknown name with the closest one."""
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


def _issue_fields(issue: given.IssueOptions, reference: RepositoryReference, target: str | None) -> dict[str, Any]:
    number = issue.issue if issue.issue is not None else reference.issue
    given_ways = [number is not None, issue.issue_file is not None, issue.title is not None]
    if sum(given_ways) != 1 or (issue.body is not None and issue.title is None):
        remedy = (
            "Give one of: the address of an issue, --issue N, --issue-file FILE, or --title TEXT with --body TEXT."
        )
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
        remedy = "Give a text file in UTF-8, whose first line is the title."
        raise InvalidInputError(f"--issue-file {path} is not a text file.", remedy=remedy) from error
    text = text.removeprefix("\ufeff").strip()
    if "\0" in text:
        remedy = "Give a text file in UTF-8, whose first line is the title."
        raise InvalidInputError(f"--issue-file {path} is not a text file.", remedy=remedy)
    if len(content) > TEXT_LIMIT_BYTES:
        remedy = "Put the text into an issue of the forge, or a file of the repository, and name it here."
        raise InvalidInputError(f"--issue-file {path} has more than {TEXT_LIMIT_BYTES:,} bytes.", remedy=remedy)
    if not text:
        raise InvalidInputError(
            f"--issue-file {path} is empty.", remedy="Write the title on its first line, and the text below it."
        )
    title, _, body = text.partition("\n")
    return title.lstrip("# ").strip(), body.strip()


def _step_settings(settings: Sequence[str]) -> dict[str, dict[str, object]]:
    """Parse `STEP.KEY=VALUE`; the work order's input validates the step and the key."""
    steps: dict[str, dict[str, object]] = {}
    for setting in settings:
        where, equals, value = setting.partition("=")
        step, dot, key = where.partition(".")
        if not (equals and dot and step and key and value):
            remedy = "Write it as --step STEP.KEY=VALUE, such as --step implement_plan.model=opus."
            raise UsageError(f"--step {setting} is not understood.", remedy=remedy)
        steps.setdefault(step, {})[key] = json.loads(value) if _NUMBER.fullmatch(value) else value
    return steps


def uncommitted_changes(path: Path) -> list[str]:
    """Return the files of a checkout that differ from its last commit; none if git cannot report them."""
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
