"""The facts that a command should give the agent."""

import pytest

from septet.commands.loader import Command
from septet.commands.placeholders import missing, ought_to_use
from septet.contracts.names import Step


def command(step: Step, text: str) -> Command:
    """Make a repository's own command of this text."""
    return Command(step, step.value, f".septet/commands/{step.value}.md", text, built_in=False)


def test_a_command_that_never_mentions_the_issue_is_warned_of() -> None:
    """The warning names the file, the missing fact and the placeholders for it."""
    (warning,) = missing(command(Step.CLASSIFY_ISSUE, "Classify."))
    assert warning.startswith(".septet/commands/classify_issue.md never tells the agent the issue: ")
    assert warning.endswith(" use $1 or ${ISSUE_BODY} or ${ISSUE_JSON}.")


@pytest.mark.parametrize("text", ["$ARGUMENTS", "$1", "${1}", "${ISSUE_BODY}", "${ISSUE_JSON}"])
def test_every_way_to_the_issue_counts(text: str) -> None:
    """The issue counts by number, by name, or with all arguments."""
    assert missing(command(Step.CLASSIFY_ISSUE, text)) == ()


def test_all_arguments_meet_the_needs_of_every_step() -> None:
    """All arguments of a step meet the step's needs."""
    assert [step for step in Step if missing(command(step, "$ARGUMENTS"))] == []
    assert all(ought_to_use(step) for step in Step)
