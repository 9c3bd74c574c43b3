"""The prompt of an agent: the command with its placeholders filled, and feedback on earlier work.

Placeholders are replaced in one pass, and values are not searched for placeholders. docs/commands.md lists the
placeholders.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from septet.commands.command import FIRST_STEP, Command, Values, arguments_of, available
from septet.contracts.names import REWORK, Step
from septet.errors import CommandError

_PLACEHOLDER: Final = re.compile(
    r"""
    \$ (?:
        (?P<dollar> \$ )
      | (?P<bare> ARGUMENTS (?! [A-Za-z0-9_] ) | [1-9][0-9]* )
      | \{ (?P<braced> [A-Z][A-Z0-9_]* | [1-9][0-9]* ) \}
    )
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One placeholder in a command's text."""

    text: str
    """The placeholder as written, such as `$2` or `${ISSUE_TITLE}`."""
    name: str
    line: int
    """The line number, from 1."""


def placeholders(command: Command) -> Iterator[Placeholder]:
    """Yield the placeholders of a command from top to bottom; `$$` is not a placeholder."""
    line, counted_to = 1, 0
    for match in _PLACEHOLDER.finditer(command.text):
        line += command.text.count("\n", counted_to, match.start())
        counted_to = match.start()
        if name := match["bare"] or match["braced"]:
            yield Placeholder(match[0], name, line)


def check(command: Command) -> None:
    """Check, before an agent starts, that each placeholder of a command will have a value.

    Raises:
        CommandError: A value is missing; the message names the file, and each line and placeholder.
    """
    _refuse_unknown(command, available(command.step, command.name))


def fill(command: Command, arguments: Sequence[str], by_name: Mapping[str, str]) -> str:
    """Return the command's text with all placeholders replaced by values; an empty text is a value too.

    `arguments` has the values of `$1`, `$2`, …; `$ARGUMENTS` is all of them, joined by ", ".

    Raises:
        CommandError: A placeholder has no value; the message names the file, and each line and placeholder.
    """
    values = dict(by_name)
    values |= {str(number): argument for number, argument in enumerate(arguments, start=1)}
    if arguments:
        values["ARGUMENTS"] = ", ".join(arguments)
    _refuse_unknown(command, values.keys())

    def value(match: re.Match[str]) -> str:
        name = match["bare"] or match["braced"]
        return values[name] if name else "$"

    return _PLACEHOLDER.sub(value, command.text)


def _refuse_unknown(command: Command, names: AbstractSet[str]) -> None:
    unknown = [placeholder for placeholder in placeholders(command) if placeholder.name not in names]
    if not unknown:
        return
    where = "; ".join(f"line {placeholder.line}: {placeholder.text}" for placeholder in unknown)
    message = f"{command.place} uses placeholders that {command.step} has no value for: {where}."
    first, count = unknown[0], len(arguments_of(command.step, command.name))
    since = f"{command.step} has $1 to ${count}, $ARGUMENTS and named values."
    if first.name in FIRST_STEP:
        since = f"${{{first.name}}} is available from {FIRST_STEP[first.name]} on."
    remedy = f"{since} Correct the file, or write $${first.text[1:]} where the text itself is meant."
    raise CommandError(message, remedy=remedy)


_REASON_SHOWN: Final = 4000
"""The most characters of one reason: an agent's own words or the end of a failing check's output."""
_SECOND_TRY: Final = """\
## This is the second try

The first try was not accepted. What was said of it, and of the work before it:

{reasons}

What it left in the working tree is still there. Look at it first: keep what is right, correct what is wrong. Then
answer as described above. There is no third try.
"""
_SAID_BEFORE: Final = """\
## What was said of the work so far

{reasons}

Heed this in what you do now; where it differs from the text above, do as it says. Work that was done before may be
in the working tree. Look at it first: keep what is right, correct what is wrong. Then answer as described above.
"""


def prompt(command: Command, values: Values, *notes: str) -> str:
    """Return the text for the agent's stdin: the filled command, and then each of `notes` that is not empty.

    A CLI takes a prompt that begins with `/` for its own command; such a prompt gets a heading.

    Raises:
        CommandError: A placeholder has no value.
    """
    filled = fill(command, values.arguments, values.by_name)
    if filled.lstrip().startswith("/"):
        filled = f"# {command.name}\n\n{filled}"
    return "\n\n".join([filled.rstrip("\n"), *(note.rstrip("\n") for note in notes if note)]) + "\n"


def step_note(reasons: Sequence[str], attempt: int) -> str:
    """Return the paragraph of a prompt with the objections to earlier work; empty without `reasons`.

    In a second try, `reasons` say why the first try was refused. In a first try, they are a person's feedback or a
    later step's complaint. Of a long reason, only the end is kept.
    """
    if not reasons:
        return ""
    shown = (reason[-_REASON_SHOWN:].strip().replace("\n", "\n  ") for reason in reasons)
    lines = "\n".join(f"- {reason}" for reason in shown)
    return (_SECOND_TRY if attempt > 1 else _SAID_BEFORE).format(reasons=lines)


class Need(NamedTuple):
    """A fact that an agent needs for a step, and the placeholders that contain it."""

    what: str
    any_of: frozenset[str]
    """The named values that contain the fact; a command needs only one of them."""


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
    """Return the facts that a command needs: the feedback if `name` is `rework`, otherwise `step`'s facts."""
    return (_FEEDBACK,) if name == REWORK else _OUGHT_TO_USE[step]


def missing(command: Command) -> tuple[str, ...]:
    """Return a warning for each needed fact that none of a command's placeholders contains."""
    arguments = arguments_of(command.step, command.name)
    meaning = {str(number): {name} for number, name in enumerate(arguments, start=1)} | {"ARGUMENTS": {*arguments}}
    used: set[str] = set()
    for placeholder in placeholders(command):
        used |= meaning.get(placeholder.name, {placeholder.name})
    warnings = []
    for need in ought_to_use(command.step, command.name):
        if not need.any_of & used:
            numbered = [f"${arguments.index(name) + 1}" for name in arguments if name in need.any_of]
            ways = " or ".join([*numbered, *(f"${{{name}}}" for name in sorted(need.any_of))])
            warnings.append(f"{command.place} never tells the agent {need.what}: use {ways}.")
    return tuple(warnings)
