"""Text counts without its final event, and an answer may be in one part of a message or in several."""

import json
from typing import Any, Final

import pytest

from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.outcome import ExitRecord, Outcome
from septet.answers.steps import read_pieces
from septet.contracts.names import Step

WELL: Final = ExitRecord("exited", exit_code=0)
ANSWER: Final = '{"issue_class": "/bug"}'
Events = list[dict[str, Any]]


def read(cli: str, events: Events, end: ExitRecord = WELL) -> Outcome:
    """Return the outcome of a stream of these events."""
    stream = adapter_for(cli).dialect()
    stream.feed(b"".join(json.dumps(event).encode() + b"\n" for event in events))
    return stream.outcome(end, "")


def part(kind: str, **fields: Any) -> dict[str, Any]:
    """Return an event of opencode."""
    return {"type": kind, "sessionID": "ses_1", "part": fields}


def said(*texts: str, name: str = "m1", tool: str = "", parent: str | None = None) -> Events:
    """Return claude's events of one message, one event for each block."""
    blocks: Events = [{"type": "text", "text": text} for text in texts]
    blocks += [{"type": "tool_use", "name": tool}] if tool else []
    return [
        {"type": "assistant", "parent_tool_use_id": parent, "message": {"id": name, "content": [block]}}
        for block in blocks
    ]


def result(text: str) -> dict[str, Any]:
    """Return a result of claude."""
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
    outcome = read(cli, TOLD[cli])
    assert (outcome.ended, outcome.text) == ("ok", "/bug")
    for events, end in (
        (TOLD[cli], ExitRecord("exited", exit_code=1)),
        (TOLD[cli], ExitRecord("exited", signal=9)),
        (TOLD[cli], ExitRecord("idle_limit", signal=15)),
        ([*TOLD[cli], *TOOLS[cli]], WELL),
    ):
        outcome = read(cli, events, end)
        assert (outcome.ended == "ok", outcome.text) == (False, None)


def test_opencode_step_that_asks_for_a_tool_gives_no_text() -> None:
    """The text before a tool call, a new step or an error is not the answer."""
    stop = part("step_finish", reason="tool-calls", tokens={})
    assert read("opencode", [*TOLD["opencode"], stop]).text is None
    assert read("opencode", [*TOLD["opencode"], part("step_start")]).text is None
    error = {"type": "error", "sessionID": "ses_1", "error": {"name": "APIError", "data": {"statusCode": 401}}}
    assert read("opencode", [*TOLD["opencode"], error]).text is None


@pytest.mark.parametrize(
    ("events", "text", "pieces"),
    [
        ([*said("a", "b"), result("a")], "a", ("a", "b")),
        ([*said("a", "b"), result("ab")], "ab", ("a", "b")),
        ([*said("a"), result("a")], "a", ()),
        ([*said("a"), result("")], "a", ()),
        ([*said("a"), *said("b", name="m2"), result("b")], "b", ()),
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
    outcome = read("claude", events)
    assert (outcome.text or None, outcome.pieces) == (text, pieces)


def test_opencode_tells_the_parts_of_its_last_step() -> None:
    """The last part is the text; the parts of earlier steps are left out."""
    step = [part("step_start"), part("text", text="a"), part("text", text="b"), part("step_finish", reason="stop")]
    outcome = read("opencode", [part("step_start"), part("text", text="x"), *step])
    assert (outcome.text, outcome.pieces) == ("b", ("a", "b"))


@pytest.mark.parametrize(
    ("pieces", "is_read"),
    [
        (("Done.", ANSWER), True),
        ((ANSWER, "Anything else?"), True),
        (("/bug", "I classified it."), True),
        ((ANSWER[:9], ANSWER[9:]), True),
        ((ANSWER, "\n", ANSWER), True),
        ((ANSWER, ANSWER.replace("bug", "chore")), False),
        (("/bug", "/chore"), False),
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
