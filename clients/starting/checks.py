"""Check a new work order for mistakes without a server, before anything starts."""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clients.starting.repository_path import enclosing_repository, is_repository, with_host
from septet.contracts.names import AGENTS, SETTINGS_PATH
from septet.contracts.order import WorkOrderInput
from septet.errors import InvalidInputError, RepositorySettingsError
from septet.git.engine.address import parse_address

if TYPE_CHECKING:
    from septet.contracts.pipeline import PipelineInput

LONGEST_TITLE: Final = 200
_PATH_SHOWN: Final = 200
_NOBODY_ANSWERS: Final = (
    "follow_pr: a repository on this machine has no checks and no reviews, so there is nothing to follow."
)
_GIVE: Final = "Give the path of a git repository, or an address such as https://github.com/o/r."


def find_unused_settings(folder: Path, read: bytes | None, branch: str) -> tuple[str, str] | None:
    """Return a notice and a remedy if a checkout's settings differ from its base's; else `None`.

    The notice includes a mistake in the checkout's settings, so that people can correct it before the commit.

    Args:
        folder: The checkout.
        read: The base's file of settings; `None` if the base has none.
        branch: The base's name.
    """
    try:
        written = (folder / SETTINGS_PATH).read_bytes()
    except OSError:
        return None
    if written == read:
        return None
    from septet.repository_file import load_repository_settings

    lack = "is not committed to" if read is None else "differs from that of"
    unused = f"{SETTINGS_PATH} in {folder} {lack} {branch}, so it is not used yet."
    try:
        load_repository_settings({SETTINGS_PATH: written}.get)
    except RepositorySettingsError as error:
        return (
            f"{unused} It is wrong, too: {error.message}",
            f"{error.remedy} Commit it to {branch} once it is right.",
        )
    return unused, f"Commit it to {branch}."


def checked_order(order: WorkOrderInput, *, is_here: bool) -> WorkOrderInput:
    """Check a work order, and return it with its title on one line and its repository as an address.

    Args:
        order: The input.
        is_here: Whether the workers see the disk of this machine; otherwise paths are not checked.

    Raises:
        InvalidInputError: The repository or the agent does not exist; the message names it.
    """
    order = _with_short_title(order)
    order = order.model_copy(update={"repository": with_host(order.repository)})
    check_agents(agent for agent in (order.agent, order.fallback_agent) if agent is not None)
    address = parse_address(order.repository, home=Path.home())
    if order.follow_pr and address.path is not None:
        raise InvalidInputError(_NOBODY_ANSWERS, remedy="Leave it out, or name the repository on its forge.")
    if is_here and address.path is not None:
        check_folder(address.path)
    return order


def checked_pipeline(order: "PipelineInput", *, is_here: bool) -> "PipelineInput":
    """Check a pipeline, and return it with its repository as an address.

    Args:
        order: The input.
        is_here: Whether the workers see the disk of this machine; otherwise paths are not checked.

    Raises:
        InvalidInputError: The repository or an agent does not exist; the message names it.
    """
    order = order.model_copy(update={"repository": with_host(order.repository)})
    names = (order.agent, order.planner, order.executor, order.fallback_agent)
    check_agents(name for name in names if name is not None)
    address = parse_address(order.repository, home=Path.home())
    if is_here and address.path is not None:
        check_folder(address.path)
    return order


def check_agents(names: Iterable[str]) -> None:
    """Refuse a name that is not the name of an agent; the remedy names the closest agent.

    Raises:
        InvalidInputError: The agent does not exist.
    """
    for name in names:
        if name not in AGENTS:
            raise InvalidInputError(f"agent: there is no agent {name!r}.", remedy=one_of(name, AGENTS))


def check_folder(path: Path) -> None:
    """Refuse a path on this machine that is not a git repository.

    Raises:
        InvalidInputError: The path does not exist or is no repository; the remedy names the repository around it.
    """
    try:
        is_there, is_usable = (
            path.exists(),
            is_repository(path) or is_repository(path.with_name(f"{path.name}.git")),
        )
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
    """Return a remedy that lists the choices, the choice closest to the wrong word first."""
    choices = list(choices)
    near = get_close_matches(word.lower(), choices, n=1)
    listed = f"Choose one of: {', '.join(choices)}."
    return f"Did you mean {near[0]}? {listed}" if near else listed


def _with_short_title(order: WorkOrderInput) -> WorkOrderInput:
    """Return a work order with a title of one line; a longer title is copied to the head of the description."""
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
