"""The output of a configured program, read as text or as events."""

import pytest
from fakes.agent_streams import BAD, GOOD, KILLED, lines

from septet.agents.clis.adapter import Dialect
from septet.agents.clis.command.adapter import COMMAND
from septet.agents.outcomes.outcome import ExitRecord, Outcome


def read(printed: bytes, *, end: ExitRecord = GOOD, stderr: str = "", piece: int = 7) -> Outcome:
    stream: Dialect = COMMAND.dialect()
    for start in range(0, len(printed), piece):
        stream.feed(printed[start : start + piece])
    return stream.outcome(end, stderr)


@pytest.mark.parametrize(
    "printed",
    [
        b"\n  The branch is ready.\n\n",
        b'{"issue_class": "/bug"}\n',
        b'{\n  "type": "object"\n}',
        b'[{"type": "result"}]',
        b'{"type": 7}\nmore\n',
    ],
)
def test_text_is_the_answer_as_it_stands(printed: bytes) -> None:
    """Text is the answer, and so is JSON that is no event."""
    outcome = read(printed)
    assert outcome.ended == "ok"
    assert outcome.text == printed.decode().strip()


def test_lines_of_events_are_read_as_events() -> None:
    """The result event gives text, session and usage, and the lines of events are no text."""
    events = [
        {"type": "session_started", "session_id": "s-1"},
        {"type": "text", "content": "Working."},
        {"type": "result", "result": "/feature", "usage": {"input_tokens": 5, "output_tokens": 2}},
    ]
    outcome = read(b"\n" + lines(events))
    assert (outcome.ended, outcome.text, outcome.session_id) == ("ok", "/feature", "s-1")
    assert (outcome.usage.input_tokens, outcome.usage.estimated) == (5, False)


def test_events_without_a_result_are_no_answer() -> None:
    """Events without a result give no answer."""
    outcome = read(b'{"type": "text", "content": "Working."}')
    assert (outcome.ended, outcome.text) == ("no_result", None)


def test_tokens_in_the_words_of_stderr_are_estimated() -> None:
    """The last figure of each kind counts, and the usage is marked as estimated."""
    outcome = read(b"Done.", stderr="input tokens: 9\nwarning: slow\nInput tokens: 1,500 Output Tokens: 20\n")
    assert (outcome.usage.input_tokens, outcome.usage.output_tokens) == (1500, 20)
    assert outcome.usage.estimated
    assert any("slow" in warning for warning in outcome.warnings)


def test_figures_of_events_win_over_the_words_of_stderr() -> None:
    """Figures of events are kept, and an estimate only fills a gap; words without a figure give none."""
    printed = b'{"type": "result", "result": "x", "usage": {"input_tokens": 5}}\n'
    assert read(printed, stderr="Input tokens: 900").usage.input_tokens == 5
    assert not read(b"Done.", stderr="Output tokens: many").usage.estimated


def test_nothing_printed_is_no_result() -> None:
    """Exit code 0 with an empty answer is no success."""
    outcome = read(b" \n\n")
    assert (outcome.ended, outcome.kind, outcome.text) == ("no_result", "empty", None)


@pytest.mark.parametrize(
    ("end", "stderr", "ended", "kind"),
    [
        (BAD, "Invalid API key", "api_error", "authentication"),
        (BAD, "it broke", "crashed", "exit_code"),
        (KILLED, "network lost", "crashed", "signal"),
        (ExitRecord("wall_limit", signal=9), "", "limit", "wall"),
        (ExitRecord("process_limit", "processes limit of 9 reached", signal=9), "", "limit", "processes"),
        (ExitRecord("output_limit", "output limit of 9 MiB reached", signal=9), "", "limit", "output"),
        (ExitRecord("ended", why="cancelled", signal=15), "", "cancelled", "cancelled"),
    ],
)
def test_text_of_a_run_that_failed_is_no_answer(end: ExitRecord, stderr: str, ended: str, kind: str) -> None:
    """The end of the process decides the outcome; words about the model API decide the kind of error."""
    outcome = read(b"Half an answer", end=end, stderr=stderr)
    assert (outcome.ended, outcome.kind, outcome.text) == (ended, kind, None)
    assert end.why in outcome.message
