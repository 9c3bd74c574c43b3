"""What a configured program prints, read as text or as events."""

import json

import pytest

from septet.agents.clis.adapter import Dialect
from septet.agents.clis.command.adapter import COMMAND, TEXT_LIMIT_BYTES
from septet.agents.outcomes.outcome import ExitRecord, Outcome

GOOD = ExitRecord("exited", exit_code=0)


def read(printed: bytes, *, end: ExitRecord = GOOD, stderr: str = "", piece: int = 7) -> Outcome:
    """Return the outcome of what a program printed, fed in pieces."""
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
        b"{ not JSON",
        b'[{"type": "result"}]',
        b'{"type": 7}\nmore\n',
    ],
)
def test_text_is_the_answer_as_it_stands(printed: bytes) -> None:
    """Text is the answer; so is JSON that is no event, for the answer itself may be JSON."""
    outcome = read(printed)
    assert outcome.ended == "ok"
    assert outcome.text == printed.decode().strip()


def test_lines_of_events_are_read_as_events() -> None:
    """One event with a result is enough; its text, session and figures count, and the lines are no text."""
    events = [
        {"type": "session_started", "session_id": "s-1"},
        {"type": "text", "content": "Working."},
        {"type": "result", "result": "/feature", "usage": {"input_tokens": 5, "output_tokens": 2}},
    ]
    outcome = read(b"\n" + b"".join(json.dumps(event).encode() + b"\n" for event in events))
    assert (outcome.ended, outcome.text, outcome.session_id) == ("ok", "/feature", "s-1")
    assert (outcome.usage.input_tokens, outcome.usage.estimated) == (5, False)


def test_events_without_a_result_are_no_answer() -> None:
    """The stream itself is never taken for the answer."""
    outcome = read(b'{"type": "text", "content": "Working."}')
    assert (outcome.ended, outcome.text) == ("no_result", None)


def test_session_is_seen_while_events_come() -> None:
    """What the events say is known before the end."""
    stream = COMMAND.dialect()
    stream.feed(b'{"type": "session_started", "session_id": "s-1"}\n')
    assert stream.progress.session_id == "s-1"


def test_tokens_in_the_words_of_stderr_are_estimated() -> None:
    """The last figure of each kind counts, and the usage says that it was read from text."""
    outcome = read(b"Done.", stderr="input tokens: 9\nwarning: slow\nInput tokens: 1,500 Output Tokens: 20\n")
    assert (outcome.usage.input_tokens, outcome.usage.output_tokens) == (1500, 20)
    assert outcome.usage.estimated
    assert any("slow" in warning for warning in outcome.warnings)


def test_figures_of_events_win_over_the_words_of_stderr() -> None:
    """An estimate fills a gap, and replaces nothing."""
    printed = b'{"type": "result", "result": "x", "usage": {"input_tokens": 5}}\n'
    assert read(printed, stderr="Input tokens: 900").usage.input_tokens == 5


def test_no_words_of_tokens_are_no_estimate() -> None:
    """Without a figure nothing is claimed."""
    assert not read(b"Done.", stderr="Output tokens: many").usage.estimated


@pytest.mark.parametrize("printed", [b"", b" \n\n"])
def test_nothing_printed_is_no_result(printed: bytes) -> None:
    """Exit code 0 with an empty answer is not a success."""
    outcome = read(printed)
    assert (outcome.ended, outcome.kind, outcome.text) == ("no_result", "empty", None)


@pytest.mark.parametrize(
    ("end", "stderr", "ended", "kind"),
    [
        (ExitRecord("exited", exit_code=1), "Invalid API key", "api_error", "authentication"),
        (ExitRecord("exited", exit_code=1), "rate limit reached", "api_error", "rate_limit"),
        (ExitRecord("exited", exit_code=4), "it broke", "crashed", "exit_code"),
        (ExitRecord("exited", signal=9), "network lost", "crashed", "signal"),
        (ExitRecord("wall_limit", signal=9), "", "limit", "wall"),
        (ExitRecord("process_limit", "processes limit of 9 reached", signal=9), "", "limit", "processes"),
        (ExitRecord("memory_limit", "memory limit of 9 MiB reached", signal=9), "", "limit", "memory"),
        (ExitRecord("disk_limit", "disk limit of 9 MiB reached", signal=9), "", "limit", "disk"),
        (ExitRecord("tree_limit", "tree limit of 9 entries reached", signal=9), "", "limit", "tree"),
        (ExitRecord("output_limit", "output limit of 9 MiB reached", signal=9), "", "limit", "output"),
        (ExitRecord("ended", why="cancelled", signal=15), "", "cancelled", "cancelled"),
    ],
)
def test_text_of_a_run_that_failed_is_no_answer(end: ExitRecord, stderr: str, ended: str, kind: str) -> None:
    """How the process ended decides, and the words of an error of the model API are understood."""
    outcome = read(b"Half an answer", end=end, stderr=stderr)
    assert (outcome.ended, outcome.kind, outcome.text) == (ended, kind, None)
    assert end.why in outcome.message


def test_of_a_long_text_the_end_is_kept() -> None:
    """Memory does not grow with the text, and its last 4 MB are the answer."""
    text = b"a" * TEXT_LIMIT_BYTES + b"b" * TEXT_LIMIT_BYTES + b"c"
    outcome = read(text + b"\n", piece=1 << 20)
    assert outcome.text is not None
    assert len(outcome.text) <= TEXT_LIMIT_BYTES
    assert outcome.text.endswith("bc")
