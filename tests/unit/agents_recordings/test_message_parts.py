"""Text counts without its final event, and an answer may be in one part of a message or in several."""

from typing import Any, Final

import pytest
from fakes.agent_streams import BAD, GOOD, KILLED, outcome_of, part

from septet.agents.outcomes.outcome import ExitRecord
from septet.answers.steps import read_pieces
from septet.contracts.names import Step

ANSWER: Final = '{"issue_class": "/bug"}'
Events = list[dict[str, Any]]


def said(*texts: str, name: str = "m1", tool: str = "", parent: str | None = None) -> Events:
    """Return claude's events of one message, one event for each block."""
    blocks: Events = [{"type": "text", "text": text} for text in texts]
    blocks += [{"type": "tool_use", "name": tool}] if tool else []
    return [
        {"type": "assistant", "parent_tool_use_id": parent, "message": {"id": name, "content": [block]}}
        for block in blocks
    ]


def result(text: str) -> dict[str, Any]:
    return {"type": "result", "is_error": False, "result": text, "session_id": "s"}


TOLD: Final[dict[str, Events]] = {
    "opencode": [part("step_start"), part("text", text="/bug")],
    "gemini": [{"type": "init", "session_id": "s"}, {"type": "message", "role": "assistant", "content": "/bug"}],
    "copilot": [{"type": "assistant.message", "data": {"content": "/bug", "toolRequests": []}}],
    "claude": said("/bug"),
}
TOOLS: Final[dict[str, Events]] = {
    "opencode": [part("tool_use", tool="bash", state={"status": "completed"})],
    "gemini": [{"type": "tool_use", "tool_name": "bash", "tool_id": "t"}],
    "copilot": [{"type": "assistant.message", "data": {"content": "", "toolRequests": [{"name": "bash"}]}}],
    "claude": said(tool="Bash"),
}


@pytest.mark.parametrize("cli", TOLD)
def test_text_counts_without_the_event_that_ends_it(cli: str) -> None:
    """Text counts if the CLI ends by itself with exit code 0 and calls no tool after the text."""
    outcome = outcome_of(cli, *TOLD[cli])
    assert (outcome.ended, outcome.text) == ("ok", "/bug")
    idle = ExitRecord("idle_limit", signal=15)
    for more, end in (([], BAD), ([], KILLED), ([], idle), (TOOLS[cli], GOOD)):
        outcome = outcome_of(cli, *TOLD[cli], *more, end=end)
        assert (outcome.ended == "ok", outcome.text) == (False, None)


def test_opencode_step_that_asks_for_a_tool_gives_no_text() -> None:
    """The text before a tool call, a new step or an error is not the answer."""
    error = {"type": "error", "sessionID": "ses_1", "error": {"name": "APIError", "data": {"statusCode": 401}}}
    for more in (part("step_finish", reason="tool-calls", tokens={}), part("step_start"), error):
        assert outcome_of("opencode", *TOLD["opencode"], more).text is None


@pytest.mark.parametrize(
    ("events", "text", "pieces"),
    [
        ([*said("a", "b"), result("a")], "a", ("a", "b")),
        ([*said("a", "b"), result("ab")], "ab", ("a", "b")),
        ([*said("a"), result("a")], "a", ()),
        ([*said("a"), result("")], "a", ()),
        ([*said("a", tool="Bash"), *said("b"), result("b")], "b", ()),
        ([*said("a", tool="Bash"), result("")], None, ()),
        ([*said("a"), *said("b", name="m2", parent="toolu_1"), result("a")], "a", ()),
        ([*said(*"abc" * 20), result("a")], "a", tuple("abcabcabcabcabca")),
    ],
)
def test_claude_result_is_completed_by_the_last_message_of_its_session(
    events: Events, text: str | None, pieces: tuple[str, ...]
) -> None:
    """A message's blocks come one by one, and the result may hold only one of them or be empty."""
    outcome = outcome_of("claude", *events)
    assert (outcome.text or None, outcome.pieces) == (text, pieces)


def test_opencode_tells_the_parts_of_its_last_step() -> None:
    """The last part is the text; the parts of earlier steps are left out."""
    step = [part("step_start"), part("text", text="a"), part("text", text="b"), part("step_finish", reason="stop")]
    outcome = outcome_of("opencode", part("step_start"), part("text", text="x"), *step)
    assert (outcome.text, outcome.pieces) == ("b", ("a", "b"))


@pytest.mark.parametrize(
    ("pieces", "is_read"),
    [
        (("Done.", ANSWER), True),
        ((ANSWER, "Anything else?"), True),
        ((ANSWER[:9], ANSWER[9:]), True),
        ((ANSWER, "\n", ANSWER), True),
        ((ANSWER, ANSWER.replace("bug", "chore")), False),
        (("no", "answer"), False),
        ((), False),
    ],
)
def test_an_answer_is_read_from_the_parts_of_a_message_together_or_from_one(
    pieces: tuple[str, ...], *, is_read: bool
) -> None:
    """One valid part, or all parts together, give the answer; two different answers are a conflict."""
    answer = read_pieces(Step.CLASSIFY_ISSUE, pieces)
    assert (answer is not None and answer.value.result_text == "/bug") is is_read
