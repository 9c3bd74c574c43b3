"""The values that each step's command should use, for the warnings of `septet doctor`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from septet.commands.filler import placeholders
from septet.commands.loader import Command
from septet.commands.values import arguments_of
from septet.contracts.names import REWORK, Step


class Need(NamedTuple):
    """A fact that the agent needs for a step's work."""

    what: str
    """The fact in words."""
    any_of: frozenset[str]
    """The named values that hold the fact; a command needs only one of them."""


_ISSUE: Final = Need("the issue", frozenset({"ISSUE_JSON", "ISSUE_BODY"}))
_ORDER: Final = Need("the work order's id", frozenset({"WORK_ORDER_ID"}))
_CLASS: Final = Need("the issue's class", frozenset({"ISSUE_CLASS"}))
_PLAN: Final = Need("the plan's path", frozenset({"PLAN_PATH"}))
_FEEDBACK: Final = Need("what is said on the pull request", frozenset({"FEEDBACK_JSON"}))

_OUGHT_TO_USE: Final[Mapping[Step, tuple[Need, ...]]] = MappingProxyType(
    {
        Step.CLASSIFY_ISSUE: (_ISSUE,),
        Step.BUILD_PLAN: (_ISSUE, _ORDER),
        Step.FIND_PLAN_FILE: (_ORDER, Need("the planner's answer", frozenset({"PLANNER_ANSWER"}))),
        Step.GENERATE_BRANCH: (_ISSUE, _ORDER, _CLASS),
        Step.IMPLEMENT_PLAN: (_PLAN,),
        Step.CREATE_COMMIT: (_ISSUE, _CLASS),
        Step.CREATE_PULL_REQUEST: (_ISSUE, _PLAN),
    }
)


def ought_to_use(step: Step, name: str = "") -> tuple[Need, ...]:
    """Return the facts that a command of `step` should hold; for `rework`, only the feedback."""
    return (_FEEDBACK,) if name == REWORK else _OUGHT_TO_USE[step]


def missing(command: Command) -> tuple[str, ...]:
    """Return one warning for each fact that `command` leaves out."""
    names = _names_used(command)
    return tuple(
        f"{command.place} never tells the agent {need.what}: use {_ways(command, need)}."
        for need in ought_to_use(command.step, command.name)
        if not need.any_of & names
    )


def _names_used(command: Command) -> frozenset[str]:
    arguments = arguments_of(command.step, command.name)
    by_number = {str(number): {name} for number, name in enumerate(arguments, start=1)}
    meaning = {**by_number, "ARGUMENTS": set(arguments)}
    return frozenset().union(
        *(meaning.get(placeholder.name, {placeholder.name}) for placeholder in placeholders(command))
    )


def _ways(command: Command, need: Need) -> str:
    arguments = arguments_of(command.step, command.name)
    numbered = [f"${arguments.index(name) + 1}" for name in arguments if name in need.any_of]
    return " or ".join([*numbered, *(f"${{{name}}}" for name in sorted(need.any_of))])
