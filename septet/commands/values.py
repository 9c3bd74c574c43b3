"""The values that a step's command may use: named values, and the numbered arguments made of them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

from septet.contracts.names import AGENT_NAMES, REWORK, Step
from septet.contracts.steps import Progress
from septet.contracts.workspace import Workspace

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
"""Each `${NAME}`, and the first step that has a value for the name; every later step has the value too."""


@dataclass(frozen=True, slots=True)
class Values:
    """The values for one command's placeholders."""

    arguments: tuple[str, ...]
    """The values of `$1`, `$2`, …; the value of `$ARGUMENTS` is all of them, joined by ", "."""
    by_name: Mapping[str, str]


_NAMES: Final[Mapping[Step, tuple[str, ...]]] = MappingProxyType(
    {step: tuple(name for name, first in FIRST_STEP.items() if first.number <= step.number) for step in Step}
)
"""The named values that a step's command may use, by step."""
REWORK_ARGUMENTS: Final = ("FEEDBACK_JSON", "BRANCH_NAME")
"""The names of the values of `$1` and `$2` in the command of a rework."""


def arguments_of(step: Step, name: str) -> tuple[str, ...]:
    """Return the names of the values of `$1`, `$2`, … in a command, in this order."""
    return REWORK_ARGUMENTS if name == REWORK else ARGUMENTS[step]


def available(step: Step, name: str = "") -> frozenset[str]:
    """Return the names of the placeholders that a command of `step` may use, such as `ISSUE_JSON` and `1`."""
    if name == REWORK:
        return frozenset({"ARGUMENTS", "1", "2", "FEEDBACK_JSON", "FEEDBACK_MARK", *FIRST_STEP})
    numbered = {str(number) for number in range(1, len(ARGUMENTS[step]) + 1)}
    return frozenset({"ARGUMENTS", *numbered, *_NAMES[step]})


def values(step: Step, workspace: Workspace, progress: Progress, issue: Mapping[str, JsonValue]) -> Values:
    """Return the values for `step`'s command. An unknown fact is the empty string.

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
    """Return the values for the command of a rework, like `values`."""
    known = values(Step.CREATE_PULL_REQUEST, workspace, progress, issue).by_name
    own = {"FEEDBACK_JSON": feedback_json, "FEEDBACK_MARK": mark_of(feedback_json)}
    by_name = {**known, **own, "AGENT_NAME": AGENT_NAMES[Step.IMPLEMENT_PLAN]}
    return Values(tuple(by_name[name] for name in REWORK_ARGUMENTS), by_name)


def mark_of(text: str) -> str:
    """Return the delimiter to put around a text in a prompt: the text's digest, which the text cannot contain.

    The same text has the same delimiter in every attempt, so that the prompt does not change between attempts.
    """
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
