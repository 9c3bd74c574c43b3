"""The limit of an agent's answer: the end is read, and a note names the setting of the limit."""

import json

import pytest

from septet.agents.clis.command.adapter import CommandStream
from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.outcome import ExitRecord, Outcome, bound_answer

_END = ExitRecord("exited", exit_code=0)
_MIB = 1024 * 1024


def test_of_a_long_answer_the_end_is_read() -> None:
    """A note names the answer's length, and the setting of the limit."""
    outcome, notes = bound_answer(Outcome("ok", text="x" * 3000 + "the end"), 2)
    assert outcome.text == ("x" * 3000 + "the end")[-2048:]
    assert notes == ("answer limit of 2 KiB reached: of 2 KiB only the end was read (SEPTET_ANSWER_LIMIT_KIB).",)


def test_an_answer_within_its_limit_is_read_whole() -> None:
    """A short answer is unchanged and has no note."""
    outcome = Outcome("ok", text="x" * 2048, structured={"a": 1})
    assert bound_answer(outcome, 2) == (outcome, ())


def test_structured_output_over_the_limit_is_not_read() -> None:
    """The text is read instead, and a note names the setting."""
    outcome, notes = bound_answer(Outcome("ok", text="/bug", structured={"a": "x" * 2048}), 2)
    assert (outcome.text, outcome.structured) == ("/bug", None)
    assert "structured output was not read (SEPTET_ANSWER_LIMIT_KIB)" in notes[0]


@pytest.mark.parametrize("pieces", [1, 9])
def test_a_program_that_prints_for_ever_is_kept_by_its_end(pieces: int) -> None:
    """The part that was dropped while the output was read counts as left out."""
    stream = CommandStream()
    for _ in range(pieces):
        stream.feed(b"y" * _MIB)
    stream.feed(b"the end")
    outcome = stream.outcome(_END, "")
    assert outcome.text is not None
    assert outcome.text.endswith("the end")
    assert outcome.left_out + len(outcome.text) == pieces * _MIB + len("the end")


def test_a_long_text_of_a_stream_is_kept_by_its_end() -> None:
    """The parts of a long text are joined, and the end of the text is kept."""
    stream = adapter_for("gemini").dialect()
    stream.feed(_line({"type": "init", "session_id": "s", "model": "m"}))
    for _ in range(10):
        stream.feed(_line({"type": "message", "role": "assistant", "content": "z" * _MIB, "delta": True}))
    stream.feed(_line({"type": "message", "role": "assistant", "content": "the end", "delta": True}))
    stream.feed(_line({"type": "result", "status": "success", "stats": {}}))
    outcome = stream.outcome(_END, "")
    assert outcome.text is not None
    assert outcome.text.endswith("the end")
    assert outcome.left_out + len(outcome.text) == 10 * _MIB + len("the end")


def test_a_line_that_is_too_long_to_be_read_is_told() -> None:
    """If the result's line is too long, the run has no result, and the message names the line's limit."""
    stream = adapter_for("claude").dialect()
    stream.feed(_line({"type": "system", "subtype": "init", "session_id": "s"}))
    stream.feed(_line({"type": "result", "subtype": "success", "result": "w" * (17 * _MIB)}))
    outcome = stream.outcome(_END, "")
    assert outcome.ended == "no_result"
    assert "1 line of its output over 16 MiB could not be read." in outcome.message


def _line(event: dict[str, object]) -> bytes:
    return json.dumps(event).encode() + b"\n"
