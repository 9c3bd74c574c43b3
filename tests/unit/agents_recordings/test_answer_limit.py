"""The limit of an agent's answer: the end is read, and a note names the setting of the limit."""

from collections.abc import Callable

import pytest
from fakes.agent_streams import GOOD, lines, outcome_of

from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.outcome import Outcome, bound_answer

_MIB = 1024 * 1024


def test_of_a_long_answer_the_end_is_read() -> None:
    """A note names the answer's length, and the setting of the limit."""
    outcome, notes = bound_answer(Outcome("ok", text="x" * 3000 + "the end"), 2)
    assert outcome.text == ("x" * 3000 + "the end")[-2048:]
    assert notes == ("answer limit of 2 KiB reached: of 2 KiB only the end was read (SEPTET_ANSWER_LIMIT_KIB).",)


def test_structured_output_over_the_limit_is_not_read() -> None:
    """The text is read instead, and a note names the setting."""
    outcome, notes = bound_answer(Outcome("ok", text="/bug", structured={"a": "x" * 2048}), 2)
    assert (outcome.text, outcome.structured) == ("/bug", None)
    assert "structured output was not read (SEPTET_ANSWER_LIMIT_KIB)" in notes[0]


def _delta(text: str) -> bytes:
    return lines([{"type": "message", "role": "assistant", "content": text, "delta": True}])


@pytest.mark.parametrize(("agent", "chunk"), [("command", str.encode), ("gemini", _delta)])
def test_a_long_text_is_kept_by_its_end(agent: str, chunk: Callable[[str], bytes]) -> None:
    """Of a long text at most 4 MiB stay in memory, and the part that was dropped counts as left out."""
    stream = adapter_for(agent).dialect()
    for _ in range(9):
        stream.feed(chunk("y" * _MIB))
    stream.feed(chunk("the end"))
    outcome = stream.outcome(GOOD, "")
    assert outcome.text is not None
    assert outcome.text.endswith("the end")
    assert len(outcome.text) <= 4 * _MIB
    assert outcome.left_out + len(outcome.text) == 9 * _MIB + len("the end")


def test_a_line_that_is_too_long_to_be_read_is_told() -> None:
    """If the result's line is too long, the run has no result, and the message names the line's limit."""
    started = {"type": "system", "subtype": "init", "session_id": "s"}
    outcome = outcome_of("claude", started, {"type": "result", "subtype": "success", "result": "w" * (17 * _MIB)})
    assert outcome.ended == "no_result"
    assert "1 line of its output over 16 MiB could not be read." in outcome.message
