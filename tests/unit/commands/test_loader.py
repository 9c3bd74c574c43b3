"""The command that a step runs."""

import pytest

from septet.answers.steps import forms_of
from septet.commands.command import Command, load, load_all
from septet.commands.placeholders import check, missing
from septet.contracts.names import IssueClass, Step
from septet.errors import CommandError


def nothing(_path: str) -> bytes | None:
    return None


@pytest.mark.parametrize("command", load_all(nothing), ids=lambda command: command.name)
def test_a_built_in_command_is_complete(command: Command) -> None:
    """Its first line is its name, its placeholders have values, and it meets the needs of its step."""
    check(command)
    assert command.text.splitlines()[0] == f"# {command.name}"
    assert missing(command) == ()
    assert command.built_in


@pytest.mark.parametrize("command", load_all(nothing), ids=lambda command: command.name)
def test_a_built_in_command_says_what_to_answer(command: Command) -> None:
    """The text names the keys of the step's contract, for agents without a schema."""
    of_step = {key for form in forms_of(command.step) for key in form["properties"]}
    keys = {"success", "summary", "commit_message", "replies"} if command.name == "rework" else of_step
    assert all(f'"{key}":' in command.text for key in keys)


def test_a_repositorys_own_command_comes_first() -> None:
    """The file at the base commit replaces the built-in command, and no other file is read."""
    asked: list[str] = []

    def own(path: str) -> bytes | None:
        asked.append(path)
        return b"\xef\xbb\xbfMy plan\r\nfor $1\r\n"

    command = load(Step.BUILD_PLAN, IssueClass.CHORE, own)
    assert asked == [".septet/commands/build_plan_chore.md"]
    assert (command.text, command.place, command.built_in) == ("My plan\nfor $1\n", asked[0], False)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"one\ntwo\nthree \xff\n", r"^\.septet/commands/classify_issue\.md line 3 is not valid UTF-8"),
        (b" \n\n", "is blank"),
    ],
)
def test_a_file_that_is_no_command_is_refused(content: bytes, words: str) -> None:
    """The error names the file and the line of the first wrong byte; a blank command would let the agent guess."""
    with pytest.raises(CommandError, match=words):
        load(Step.CLASSIFY_ISSUE, None, lambda _path: content)
