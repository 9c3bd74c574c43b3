"""The commands that a comment can contain."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.contracts.names import Step
from septet.forges.events.comment_commands import parse_command

SHA = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("body", "verb", "plan", "step", "words"),
    [
        ("/septet run", "run", None, None, ""),
        ("\n  /septet RUN  \r\n", "run", None, None, ""),
        ("/septet cancel done by hand", "cancel", None, None, "done by hand"),
        (f"/septet approve {SHA}", "approve", SHA, None, ""),
        (f"/septet approve {SHA.upper()} looks good", "approve", SHA, None, "looks good"),
        ("/septet approve C0FFEEC0FFEE decadedecade", "approve", None, None, ""),
        ("/septet approve", "approve", None, None, ""),
        (f"/septet reject {SHA} too large\nin two, please", "reject", SHA, None, "too large\nin two, please"),
        ("/septet reject too large", "reject", None, None, "too large"),
        ("/septet retry implement_plan", "retry", None, Step.IMPLEMENT_PLAN, ""),
        ("/septet retry rm -rf /", "unknown", None, None, "-rf /"),
        ("/septet", "unknown", None, None, ""),
        ("/septet unknown", "unknown", None, None, ""),
    ],
)
def test_commands(body: str, verb: str, plan: str | None, step: Step | None, words: str) -> None:
    """The first line of a comment names the command; 64 digits name a plan, and a word names a step."""
    command = parse_command(body)
    assert command is not None
    assert (command.verb, command.plan_sha256, command.step, command.words) == (verb, plan, step, words)


def test_findings_are_named_by_their_ids() -> None:
    """Each finding has an id of twelve digits in any case; any other word makes the text a comment on the plan."""
    command = parse_command("/septet approve C0FFEEC0FFEE decadedecade")
    assert command is not None
    assert command.findings == ("c0ffeec0ffee", "decadedecade")
    other = parse_command("/septet approve c0ffeec0ffee please")
    assert other is not None
    assert (other.findings, other.words) == ((), "c0ffeec0ffee please")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "I say /septet run",
        "> /septet run",
        "/septetrun",
        "Please:\n/septet run",
        "/septet run\n\n<!-- septet: answer-1 -->",
        "`/septet run`",
    ],
)
def test_talk_is_no_command(body: str) -> None:
    """A quote, a sentence and a comment by Septet itself contain no command."""
    assert parse_command(body) is None


@given(st.text(max_size=9000))
def test_whatever_follows_a_verb_is_bounded_words(text: str) -> None:
    """The text after a verb becomes at most 8000 characters of words, whatever a comment contains."""
    command = parse_command(f"/septet reject {text}")
    assert command is None or len(command.words) <= 8000
