"""The whole prompt of an agent run."""

import pytest

from septet.commands.loader import Command
from septet.commands.prompt import prompt, step_note
from septet.commands.values import Values
from septet.contracts.names import Step


def command(text: str) -> Command:
    """Make a command of this text."""
    return Command(Step.CLASSIFY_ISSUE, "classify_issue", "classify_issue.md", text, built_in=False)


@pytest.mark.parametrize(("template", "value"), [("$1", "/bug"), ("/review $1", "x"), ("\n $1", "/bug")])
def test_no_prompt_begins_with_a_slash(template: str, value: str) -> None:
    """A text that an agent would take for a command of its own gets a heading, and is whole behind it."""
    text = prompt(command(template), Values((value,), {}))
    assert text.startswith("# classify_issue\n\n")
    assert template.replace("$1", value) in text


def test_notes_follow_the_command() -> None:
    """Each note is a paragraph of its own; an empty one leaves no trace."""
    assert (
        prompt(command("Do $1.\n\n"), Values(("it",), {}), "", "First.\n", "Second.")
        == "Do it.\n\nFirst.\n\nSecond.\n"
    )


def test_a_note_is_not_filled() -> None:
    """An agent's own words in a note stay as they are."""
    assert "$1 ${X} $$" in prompt(command("$1"), Values(("a",), {}), step_note(["$1 ${X} $$"], 2))


def test_a_second_try_is_told_every_reason() -> None:
    """Reasons of many lines stay in their place in the list; of a long one the end is kept."""
    note = step_note(["no plan file\nat specs/x.md", "y" * 5000 + "THE END"], 2)
    assert "- no plan file\n  at specs/x.md\n- yyy" in note
    assert "THE END" in note
    assert len(note) < 5000
    assert "This is the second try" in note
    assert "left in the working tree is still there" in note


def test_a_first_try_is_told_what_was_said_of_the_work_before() -> None:
    """A person's feedback {braces and all} comes as what it is: nothing says that a try was refused, or the last one."""
    note = step_note(["a person rejected the plan: round {total}\nnot each item"], 1)
    assert "- a person rejected the plan: round {total}\n  not each item\n" in note
    assert "do as it says" in note
    assert "try" not in note


@pytest.mark.parametrize("attempt", [1, 2])
def test_where_nothing_was_said_nothing_is_added(attempt: int) -> None:
    """A step that begins with nothing before it has the command alone."""
    assert step_note([], attempt) == ""
