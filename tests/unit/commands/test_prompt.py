"""The prompt of an agent run: a command that is filled in one pass, the facts that it should give, and notes."""

import time

import pytest

from septet.commands.command import Command, Values
from septet.commands.placeholders import check, fill, missing, prompt, step_note
from septet.contracts.names import Step
from septet.errors import CommandError


def command(text: str, step: Step = Step.GENERATE_BRANCH) -> Command:
    return Command(step, step.value, f".septet/commands/{step.value}.md", text, built_in=False)


@pytest.mark.parametrize(
    ("template", "arguments", "expected"),
    [
        ("$1..$10..$11", list("abcdefghijk"), "a..j..k"),
        ("title=$1 body=$2 id=$3", ["t", "…see $3", "SECRET"], "title=t body=…see $3 id=SECRET"),
        ("d=$ARGUMENTS", ["use $ARGUMENTS and $1"], "d=use $ARGUMENTS and $1"),
        (r"\$1 $$1", ["V"], r"\V $1"),
        ("$ARGUMENTS", ["x", "y, z"], "x, y, z"),
        ("$1|$2|$ARGUMENTS", ["", ""], "||, "),
        ("$$$1 $$$$ $$ARGUMENTS", ["V"], "$V $$ $ARGUMENTS"),
        ("$HOME $0 $00 $x $ $- $ARGUMENTS_FILE ${lower} ${} $(1)", ["V"], None),
        ("${1}0 ${ARGUMENTS}", ["V"], "V0 V"),
        ("$1", [r"\g<0> \1 \n"], r"\g<0> \1 \n"),
        ("٣ $٣", ["V"], None),
    ],
)
def test_every_known_defect_of_substitution_is_absent(
    template: str, arguments: list[str], expected: str | None
) -> None:
    """Each template gives the expected text; `None` means that the text is unchanged."""
    assert fill(command(template), arguments, {}) == (template if expected is None else expected)


@pytest.mark.parametrize(
    ("template", "arguments", "placeholder"),
    [
        ("$1 and $10", ["a", "b"], "$10"),
        ("p=$1 q=$2", ["a"], "$2"),
        ("$ARGUMENTS", [], "$ARGUMENTS"),
        ("${ISSUE_NUMER}", ["a"], "${ISSUE_NUMER}"),
        ("$" + "9" * 5000, ["a"], "$" + "9" * 5000),
    ],
)
def test_a_placeholder_without_a_value_is_refused(template: str, arguments: list[str], placeholder: str) -> None:
    """The error names the file, the line and the placeholder."""
    with pytest.raises(CommandError) as caught:
        fill(command(f"one\ntwo\nthree {template}"), arguments, {})
    file = ".septet/commands/generate_branch.md"
    where = f"line 3: {placeholder}"
    assert caught.value.message == f"{file} uses placeholders that generate_branch has no value for: {where}."


def test_a_check_names_every_wrong_placeholder_before_any_value_is_known() -> None:
    """One message names all wrong placeholders with their lines, and the remedy shows how to escape a dollar."""
    with pytest.raises(CommandError) as caught:
        check(command("$1 $4\n$5\n${PLAN}"))
    assert "line 2: $5; line 3: ${PLAN}." in caught.value.message
    assert "$1 to $4" in caught.value.remedy
    assert "$$5" in caught.value.remedy


def test_a_check_tells_from_which_step_on_a_value_is_known() -> None:
    """The branch has no value in the step that names it, and the error names the first later step."""
    with pytest.raises(CommandError, match=r"\$\{BRANCH_NAME\} is available from implement_plan on"):
        check(command("${BRANCH_NAME}"))
    check(command("${BRANCH_NAME}", Step.IMPLEMENT_PLAN))


def test_arguments_of_ten_megabytes_are_filled_at_once() -> None:
    """A value of ten megabytes and a template of 50,000 lines are filled in less than two seconds."""
    long = "$1 ${ISSUE_BODY} $$ { " * 500_000
    started = time.process_time()
    filled = fill(command("$1 and $ARGUMENTS"), [long], {})
    check(command("a line with $1\n" * 50_000))
    assert len(filled) == 2 * len(long) + len(" and ")
    assert time.process_time() - started < 2.0


def test_a_command_that_never_mentions_the_issue_is_warned_of() -> None:
    """The warning names the file, the missing fact and the placeholders for it."""
    (warning,) = missing(command("Classify.", Step.CLASSIFY_ISSUE))
    assert warning.startswith(".septet/commands/classify_issue.md never tells the agent the issue: ")
    assert warning.endswith(" use $1 or ${ISSUE_BODY} or ${ISSUE_JSON}.")


@pytest.mark.parametrize(("template", "value"), [("$1", "/bug"), ("/review $1", "x"), ("\n $1", "/bug")])
def test_no_prompt_begins_with_a_slash(template: str, value: str) -> None:
    """A text with a slash at its start gets a heading, so that the agent does not take it as a command."""
    text = prompt(command(template), Values((value,), {}))
    assert text.startswith("# generate_branch\n\n")
    assert template.replace("$1", value) in text


def test_notes_follow_the_command_and_are_not_filled() -> None:
    """Each note is a paragraph after the command, with its placeholders as they are; an empty note is left out."""
    text = prompt(command("Do $1.\n\n"), Values(("it",), {}), "", "First $1.\n", "Second ${X} $$.")
    assert text == "Do it.\n\nFirst $1.\n\nSecond ${X} $$.\n"


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
