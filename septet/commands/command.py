"""The command of a step, from a file, and the values that the command's placeholders stand for."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

from septet.contracts.names import AGENT_NAMES, REWORK, IssueClass, Step
from septet.contracts.steps import Progress
from septet.contracts.workspace import Workspace
from septet.errors import CommandError

ARGUMENTS: Final[Mapping[Step, tuple[str, ...]]] = MappingProxyType(
    {
        Step.CLASSIFY_ISSUE: ("ISSUE_JSON",),
        Step.BUILD_PLAN: ("ISSUE_NUMBER", "WORK_ORDER_ID", "ISSUE_JSON"),
        Step.FIND_PLAN_FILE: ("ISSUE_NUMBER", "WORK_ORDER_ID", "PLANNER_ANSWER"),
        Step.GENERATE_BRANCH: ("ISSUE_CLASS", "ISSUE_NUMBER", "WORK_ORDER_ID", "ISSUE_JSON"),
        Step.IMPLEMENT_PLAN: ("PLAN_PATH",),
        Step.CREATE_COMMIT: ("AGENT_NAME", "ISSUE_CLASS", "ISSUE_JSON"),
        Step.CREATE_PULL_REQUEST: ("BRANCH_NAME", "ISSUE_JSON", "PLAN_PATH", "WORK_ORDER_ID"),
    }
)
"""The names of the values of `$1`, `$2`, … in each step's command."""

FIRST_STEP: Final[Mapping[str, Step]] = MappingProxyType(
    {
        "ISSUE_NUMBER": Step.CLASSIFY_ISSUE,
        "ISSUE_TITLE": Step.CLASSIFY_ISSUE,
        "ISSUE_BODY": Step.CLASSIFY_ISSUE,
        "ISSUE_JSON": Step.CLASSIFY_ISSUE,
        "ISSUE_URL": Step.CLASSIFY_ISSUE,
        "ISSUE_MARK": Step.CLASSIFY_ISSUE,
        "WORK_ORDER_ID": Step.CLASSIFY_ISSUE,
        "REPOSITORY": Step.CLASSIFY_ISSUE,
        "BASE_BRANCH": Step.CLASSIFY_ISSUE,
        "AGENT_NAME": Step.CLASSIFY_ISSUE,
        "ISSUE_CLASS": Step.BUILD_PLAN,
        "PLANNER_ANSWER": Step.FIND_PLAN_FILE,
        "PLAN_PATH": Step.GENERATE_BRANCH,
        "BRANCH_NAME": Step.IMPLEMENT_PLAN,
        "COMMIT_SHA": Step.CREATE_PULL_REQUEST,
    }
)
"""The first step that has a value for a named placeholder `${NAME}`; all later steps have the value too."""


@dataclass(frozen=True, slots=True)
class Values:
    """The values for the placeholders of one command."""

    arguments: tuple[str, ...]
    """The values of `$1`, `$2`, …; the value of `$ARGUMENTS` is all of them, joined by ", "."""
    by_name: Mapping[str, str]


_NAMES: Final[Mapping[Step, tuple[str, ...]]] = MappingProxyType(
    {step: tuple(name for name, first in FIRST_STEP.items() if first.number <= step.number) for step in Step}
)
"""The named values that the command of a step may use, by step."""
REWORK_ARGUMENTS: Final = ("FEEDBACK_JSON", "BRANCH_NAME")
"""The names of the values of `$1` and `$2` in the command of a rework."""


def arguments_of(step: Step, name: str) -> tuple[str, ...]:
    """Return the names of the values that replace a command's `$1`, `$2`, …, in this order."""
    return REWORK_ARGUMENTS if name == REWORK else ARGUMENTS[step]


def available(step: Step, name: str = "") -> frozenset[str]:
    """Return the names of all placeholders that a command of `step` may use, such as `ISSUE_JSON` and `1`."""
    if name == REWORK:
        return frozenset({"ARGUMENTS", "1", "2", "FEEDBACK_JSON", "FEEDBACK_MARK", *FIRST_STEP})
    numbered = {str(number) for number in range(1, len(ARGUMENTS[step]) + 1)}
    return frozenset({"ARGUMENTS", *numbered, *_NAMES[step]})


def values(step: Step, workspace: Workspace, progress: Progress, issue: Mapping[str, JsonValue]) -> Values:
    """Return the values for the command of `step`; the value of an unknown fact is empty.

    The issue's JSON is one line, so that no text in the JSON can look like a line of the command.
    """
    issue_json = json.dumps(issue, ensure_ascii=False)
    facts = {
        "ISSUE_NUMBER": workspace.issue_number,
        "ISSUE_TITLE": workspace.issue_title,
        "ISSUE_BODY": str(issue.get("body") or ""),
        "ISSUE_JSON": issue_json,
        "ISSUE_URL": workspace.issue_url or "",
        "ISSUE_MARK": mark_of(issue_json),
        "WORK_ORDER_ID": workspace.work_order_id,
        "REPOSITORY": workspace.repository,
        "BASE_BRANCH": workspace.base_branch,
        "AGENT_NAME": AGENT_NAMES[Step.IMPLEMENT_PLAN if step is Step.CREATE_COMMIT else step],
        "ISSUE_CLASS": progress.issue_class.value if progress.issue_class else "",
        "PLANNER_ANSWER": progress.planner_answer or "",
        "PLAN_PATH": progress.plan_path or "",
        "BRANCH_NAME": progress.branch_name or "",
        "COMMIT_SHA": progress.commit_sha or "",
    }
    by_name = {name: facts[name] for name in _NAMES[step]}
    return Values(tuple(by_name[name] for name in ARGUMENTS[step]), by_name)


def rework_values(
    workspace: Workspace, progress: Progress, issue: Mapping[str, JsonValue], feedback_json: str
) -> Values:
    """Return the values for the command of a rework; see `values`."""
    known = values(Step.CREATE_PULL_REQUEST, workspace, progress, issue).by_name
    own = {"FEEDBACK_JSON": feedback_json, "FEEDBACK_MARK": mark_of(feedback_json)}
    by_name = {**known, **own, "AGENT_NAME": AGENT_NAMES[Step.IMPLEMENT_PLAN]}
    return Values(tuple(by_name[name] for name in REWORK_ARGUMENTS), by_name)


def mark_of(text: str) -> str:
    """Return a delimiter to put around a text in a prompt: a digest of the text, which the text cannot contain.

    The same text gets the same delimiter in every attempt.
    """
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


ReadAtBase = Callable[[str], bytes | None]
"""A function that returns the content of a repository's file at the base commit; `None` if the file is missing."""

FOLDER: Final = ".septet/commands"
"""The folder for a repository's own commands."""
_COMMANDS: Final[tuple[tuple[Step, IssueClass | None], ...]] = tuple(
    (step, issue_class)
    for step in Step
    for issue_class in (tuple(IssueClass) if step is Step.BUILD_PLAN else (None,))
)


@dataclass(frozen=True, slots=True)
class Command:
    """The prompt file of a step, with placeholders."""

    step: Step
    """The step whose settings the command uses; a rework has the step `implement_plan` and another `name`."""
    name: str
    """The command's name, such as `build_plan_bug`."""
    place: str
    """The file's path, for messages."""
    text: str
    built_in: bool


def name_of(step: Step, issue_class: IssueClass | None = None) -> str:
    """Return the name of `step`'s command; `build_plan` has a command for each class of issue."""
    if step is not Step.BUILD_PLAN:
        return step.value
    if issue_class is None:
        raise CommandError("build_plan has one command for each class of issue, and no class was given.")
    return f"{step.value}_{issue_class.value.removeprefix('/')}"


def overrides() -> tuple[str, ...]:
    """Return the paths of all files with which a repository can replace commands."""
    return (*(f"{FOLDER}/{name_of(*each)}.md" for each in _COMMANDS), f"{FOLDER}/{REWORK}.md")


def load(step: Step, issue_class: IssueClass | None, override: ReadAtBase) -> Command:
    """Return the command of `step`: the repository's own, or else the built-in command.

    `override` reads a file as of the base commit, so that an agent's edits do not count.

    Raises:
        CommandError: The repository's file is blank or not UTF-8, or `build_plan` has no `issue_class`.
    """
    return _load(step, name_of(step, issue_class), override)


def load_rework(override: ReadAtBase) -> Command:
    """Return the command of a round on a pull request; see `load`."""
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
