"""Load the command of a step: the target repository's command as of the base commit, or the built-in command."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Final

from septet.contracts.names import REWORK, IssueClass, Step
from septet.errors import CommandError

ReadAtBase = Callable[[str], bytes | None]
"""A function that returns a file's content at the target repository's base commit; `None` without the file."""

FOLDER: Final = ".septet/commands"
"""The folder for a repository's own commands."""
_COMMANDS: Final[tuple[tuple[Step, IssueClass | None], ...]] = tuple(
    (step, issue_class)
    for step in Step
    for issue_class in (tuple(IssueClass) if step is Step.BUILD_PLAN else (None,))
)


@dataclass(frozen=True, slots=True)
class Command:
    """The prompt file of a step, with its placeholders."""

    step: Step
    """The step whose settings the command uses; a rework has the step `implement_plan` and another `name`."""
    name: str
    """The command's name, such as `build_plan_bug`."""
    place: str
    """The file's path, for messages."""
    text: str
    built_in: bool


def name_of(step: Step, issue_class: IssueClass | None = None) -> str:
    """Return the name of `step`'s command; the plan has a command for each class of issue."""
    if step is not Step.BUILD_PLAN:
        return step.value
    if issue_class is None:
        raise CommandError("build_plan has one command for each class of issue, and no class was given.")
    return f"{step.value}_{issue_class.value.removeprefix('/')}"


def overrides() -> tuple[str, ...]:
    """Return the possible paths of a repository's own commands."""
    return (*(f"{FOLDER}/{name_of(*each)}.md" for each in _COMMANDS), f"{FOLDER}/{REWORK}.md")


def load(step: Step, issue_class: IssueClass | None, override: ReadAtBase) -> Command:
    """Return the command of `step`: the repository's command, or else the built-in command.

    `override` reads a file as of the base commit, so that an agent's edits do not count.


    Raises:
        CommandError: The repository's file is blank or not UTF-8, or the plan's class is missing.
    """
    return _load(step, name_of(step, issue_class), override)


def load_rework(override: ReadAtBase) -> Command:
    """Return the command of a rework round on a pull request; see `load`."""
    return _load(Step.IMPLEMENT_PLAN, REWORK, override)


def _load(step: Step, name: str, override: ReadAtBase) -> Command:
    place = f"{FOLDER}/{name}.md"
    own = override(place)
    if own is not None:
        return Command(step, name, place, _text(own, place), built_in=False)
    file = resources.files("septet.commands").joinpath(f"{name}.md")
    return Command(step, name, f"septet/commands/{name}.md", _text(file.read_bytes(), name), built_in=True)


def load_all(override: ReadAtBase) -> tuple[Command, ...]:
    """Return all ten commands, in the order of the steps; see `load`."""
    return (*(load(step, issue_class, override) for step, issue_class in _COMMANDS), load_rework(override))


def _text(content: bytes, place: str) -> str:
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise CommandError(f"{place} line {line} is not valid UTF-8.", remedy="Save the file as UTF-8.") from error
    if not text.strip():
        message = f"{place} is blank."
        raise CommandError(message, remedy="Write the prompt, or delete the file for the built-in one.")
    return text
