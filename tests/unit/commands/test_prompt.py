"""The whole prompt of an agent run."""

import pytest

from septet.commands.loader import Command
from septet.commands.placeholders import prompt, step_note
from septet.commands.values import Values
from septet.contracts.names import Step


def command(text: str) -> Command:
    """Make a command of this text."""
    return Command(Step.CLASSIFY_ISSUE, "classify_issue", "classify_issue.md", text, built_in=False)


@pytest.mark.parametrize(("template", "value"), [("$1", "/bug"), ("/review $1", "x"), ("\n $1", "/bug")])
def test_no_prompt_begins_with_a_slash(template: str, value: str) -> None:
    """A text with a slash at its start gets a heading, so that the agent does not take it as a command."""
    text = prompt(command(template), Values((value,), {}))
    assert text.startswith("# classify_issue\n\n")
    assert template.replace("$1", value) in text


def test_notes_follow_the_command() -> None:
    """Each note is a paragraph after the command, and an empty note is left out."""
    assert (
        prompt(command("Do $1.\n\n"), Values(("it",), {}), "", "First.\n", "Second.")
        == "Do it.\n\nFirst.\n\nSecond.\n"
    )


def test_a_note_is_not_filled() -> None:
    """Placeholders in a note are not filled."""
    assert "$1 ${X} $$" in prompt(command("$1"), Values(("a",), {}), step_note(["$1 ${X} $$"], 2))


def test_a_second_try_is_told_every_reason() -> None:
    """Each reason is a list item with its own lines, and only the end of a long reason is kept."""
    note = step_note(["no plan file\nat specs/x.md", "y" * 5000 + "THE END"], 2)
    assert "- no plan file\n  at specs/x.md\n- yyy" in note
    assert "THE END" in note
    assert len(note) < 5000
    assert "This is the second try" in note
    assert "left in the working tree is still there" in note


def test_a_first_try_is_told_what_was_said_of_the_work_before() -> None:
    """A person's feedback is quoted as it is, and the note mentions no failed try."""
    note = step_note(["a person rejected the plan: round {total}\nnot each item"], 1)
    assert "- a person rejected the plan: round {total}\n  not each item\n" in note
    assert "do as it says" in note
    assert "try" not in note
