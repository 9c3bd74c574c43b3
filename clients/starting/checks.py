"""Check a new work order or pipeline for mistakes and conflicts before anything starts."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final

from temporalio.client import WorkflowExecution

from clients.executions.messages import server_refusals
from clients.starting.repository_path import enclosing_repository, is_repository, with_host
from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import AGENTS, SETTINGS_PATH, Stage, watched_order
from septet.contracts.order import LONGEST_TITLE, WorkOrderInput
from septet.errors import AlreadyRunningError, InvalidInputError, RepositorySettingsError
from septet.git.engine.address import parse_address
from workflows.wire.search_attributes import ISSUE, PULL_REQUEST, REPOSITORY, STAGE

if TYPE_CHECKING:
    from septet.pipelines.inputs import PipelineInput
    from septet.repository_settings import RepositorySettings

_PATH_SHOWN: Final = 200
_GIVE: Final = "Give the path of a git repository, or an address such as https://github.com/o/r."


def read_settings(files: Mapping[str, bytes]) -> "RepositorySettings":
    """Return a repository's settings; `files` has the contents of the repository's files by path.

    Raises:
        RepositorySettingsError: A setting is wrong; the message names the line.
    """
    from septet.repository_file import load_repository_settings  # a start without such a file does not need it

    return load_repository_settings(files.get)


def find_unused_settings(folder: Path, read: bytes | None, branch: str) -> tuple[str, str] | None:
    """Return a notice and a remedy if a checkout's settings file differs from the committed file; else `None`.

    The notice includes a mistake in the checkout's file. `read` is the content of the committed file; `None` if
    there is no such file.
    """
    try:
        written = (folder / SETTINGS_PATH).read_bytes()
    except OSError:
        return None
    if written == read:
        return None
    lack = "is not committed to" if read is None else "differs from that of"
    unused = f"{SETTINGS_PATH} in {folder} {lack} {branch}, so it is not used yet."
    try:
        read_settings({SETTINGS_PATH: written})
    except RepositorySettingsError as error:
        remedy = f"{error.remedy} Commit it to {branch} once it is right."
        return f"{unused} It is wrong, too: {error.message}", remedy
    return unused, f"Commit it to {branch}."


def checked_order(order: WorkOrderInput, *, is_here: bool) -> WorkOrderInput:
    """Check a work order, and return it with its title on one line and its repository as an address.

    Raises:
        InvalidInputError: The repository or the agent does not exist; the message names it.
    """
    order = _with_short_title(order)
    order = order.model_copy(update={"repository": with_host(order.repository)})
    check_agents((order.agent, order.fallback_agent))
    address = parse_address(order.repository, home=Path.home())
    if order.follow_pr and address.path is not None:
        lack = "a repository on this machine has no checks and no reviews, so there is nothing to follow."
        message = f"follow_pr: {lack}"
        raise InvalidInputError(message, remedy="Leave it out, or name the repository on its forge.")
    if is_here and address.path is not None:
        check_folder(address.path)
    return order


def checked_pipeline(order: "PipelineInput", *, is_here: bool) -> "PipelineInput":
    """Check a pipeline, and return it with its repository as an address.

    Unless the workers see the disk of this machine (`is_here`), paths are not checked.

    Raises:
        InvalidInputError: The repository or an agent does not exist; the message names it.
    """
    order = order.model_copy(update={"repository": with_host(order.repository)})
    check_agents((order.agent, order.planner, order.executor, order.fallback_agent))
    address = parse_address(order.repository, home=Path.home())
    if is_here and address.path is not None:
        check_folder(address.path)
    return order


def check_agents(names: Iterable[str | None]) -> None:
    """Refuse a name that is not the name of an agent; the remedy names the most similar agent.

    Raises:
        InvalidInputError: The agent does not exist.
    """
    for name in names:
        if name is not None and name not in AGENTS:
            raise InvalidInputError(f"agent: there is no agent {name!r}.", remedy=one_of(name, AGENTS))


def check_folder(path: Path) -> None:
    """Refuse a path on this machine that is not a git repository.

    Raises:
        InvalidInputError: The path does not exist or is no repository; the remedy may name a repository above it.
    """
    try:
        is_there = path.exists()
        is_usable = is_repository(path) or is_repository(path.with_name(f"{path.name}.git"))
    except OSError as error:
        shown = f"{str(path)[:_PATH_SHOWN]}…" if len(str(path)) > _PATH_SHOWN else str(path)
        raise InvalidInputError(f"repository: {shown}: {error.strerror}.", remedy=_GIVE) from error
    if not is_there and not is_usable:
        raise InvalidInputError(f"repository: {path} does not exist.", remedy=_GIVE)
    if not is_usable:
        around = enclosing_repository(path) if path.is_dir() else None
        remedy = f"It is inside the repository {around}: give that path." if around is not None else _GIVE
        raise InvalidInputError(f"repository: {path} is not a git repository.", remedy=remedy)


def one_of(word: str, choices: Iterable[str]) -> str:
    """Return a remedy that lists the choices; a choice similar to the wrong word comes first."""
    choices = list(choices)
    near = get_close_matches(word.lower(), choices, n=1)
    listed = f"Choose one of: {', '.join(choices)}."
    return f"Did you mean {near[0]}? {listed}" if near else listed


def _with_short_title(order: WorkOrderInput) -> WorkOrderInput:
    """Return a work order with a title of one line; if the title is too long, the description gets all of it."""
    if order.title is None:
        return order
    line = " ".join(order.title.split())
    if line == order.title and len(line) <= LONGEST_TITLE:
        return order
    if len(line) <= LONGEST_TITLE:
        return order.model_copy(update={"title": line})
    short = f"{line[: LONGEST_TITLE - 1].rstrip()}…"
    whole = "\n\n".join(part for part in (order.title.strip(), order.description) if part)
    return order.model_copy(update={"title": short, "description": whole})


async def check_start(orders: WorkOrders, order: WorkOrderInput, order_id: str | None, *, again: bool) -> None:
    """Refuse a work order if `after` names a missing work order, or if its issue has an open work order.

    Raises:
        InvalidInputError: A work order named in `after` does not exist.
        AlreadyRunningError: The issue has an open work order of another id, and `again` is false.
        ServerNotReachedError: The server does not answer, or refuses.
    """

    async def check_exists(other: str) -> None:
        if not await orders.exists(other):
            remedy = "See which work orders there are: septet list"
            raise InvalidInputError(f"after: there is no work order {other}.", remedy=remedy)

    others = [check_exists(other) for other in order.after if other != order_id]
    await asyncio.gather(*others, *([_check_issue(orders, order, order_id)] if not again else []))


async def reviews_of(orders: WorkOrders, repository: str, issues: Sequence[int]) -> str:
    """Return a line for each issue that already has a pull request in review; empty if no issue has one."""
    rows = await _of_issues(orders, "PullRequest", repository, issues) if issues else []
    lines = (
        f"Issue {row.typed_search_attributes.get(ISSUE, '')} has a pull request in review, "
        f"by {watched_order(row.id)}: {row.typed_search_attributes.get(PULL_REQUEST, '')}"
        for row in rows
        if row.typed_search_attributes.get(STAGE) == Stage.REVIEW.value
    )
    return "\n".join(lines)


async def _check_issue(orders: WorkOrders, order: WorkOrderInput, order_id: str | None) -> None:
    """Refuse a work order if its issue has an open work order with another id."""
    if order.issue is None:
        return
    for row in await _of_issues(orders, "WorkOrder", order.repository, (order.issue,)):
        if row.id != order_id:
            project = parse_address(order.repository, home=Path.home()).project
            message = f"{row.id} already works on issue {order.issue} of {project}."
            remedy = f"Watch it: septet watch {row.id}. To start another one anyway, add --again."
            raise AlreadyRunningError(message, remedy=remedy)


async def _of_issues(
    orders: WorkOrders, kind: str, repository: str, issues: Sequence[int]
) -> list[WorkflowExecution]:
    """Return a repository's open workflows of type `kind` for the given issues."""
    address = parse_address(repository, home=Path.home())
    numbers = ", ".join(f'"{issue}"' for issue in issues)
    query = f'WorkflowType="{kind}" AND ExecutionStatus="Running" AND SeptetIssue IN ({numbers})'
    with server_refusals():
        rows = [row async for row in orders.client.list_workflows(query)]
    urls = ((row, row.typed_search_attributes.get(REPOSITORY, "")) for row in rows)
    return [row for row, url in urls if url and parse_address(url, home=Path.home()).key == address.key]
