"""The stdout of a process that serves many turns, cut into turns."""

import json

import pytest

from septet.agents.supervisor.warm_pipes import LINE_LIMIT_BYTES, TurnStream

FIRST, SECOND = "11111111-0000-4000-8000-000000000000", "22222222-0000-4000-8000-000000000000"
RESULT = b'{"is_error":false,"result":"done","type":"result"}\n'


def echo(mark: str) -> bytes:
    """Return the event that a process prints when it begins a turn."""
    return json.dumps({"type": "user", "uuid": mark, "message": {}}).encode() + b"\n"


def lifecycle(mark: str) -> bytes:
    """Return claude's event about a message before its turn begins."""
    return json.dumps({"type": "command_lifecycle", "command_uuid": mark, "uuid": "x"}).encode() + b"\n"


def in_second_turn() -> TurnStream:
    """Return a stream whose second turn has just been requested."""
    stream = TurnStream()
    stream.begin_turn(b"One.", FIRST)
    stream.take_output(echo(FIRST) + RESULT)
    was_over = stream.is_over
    stream.begin_turn(b"Two.", SECOND)
    assert (was_over, stream.is_over) == (True, False)
    return stream


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_result_ends_the_turn_however_the_bytes_are_cut(size: int) -> None:
    """The output is kept byte by byte, and the turn is over with its result, not before."""
    printed = (
        b'{"type":"system"}\n' + echo(FIRST) + b'no JSON "result"\n{"type":"assistant","result":1}\n' + RESULT
    )
    stream = TurnStream()
    stream.begin_turn(b"One.", FIRST)
    kept = b""
    for start in range(0, len(printed), size):
        assert not stream.is_over
        kept += stream.take_output(printed[start : start + size])
    assert (stream.is_over, stream.has_failed, kept) == (True, False, printed)


def test_a_result_of_before_the_turn_is_no_answer_to_it() -> None:
    """A result that comes before the turn's own start is dropped, and the turn's own result counts."""
    stream = in_second_turn()
    stray = b'{"type":"result","result":"of a task in the background"}\n'
    assert stream.take_output(lifecycle(SECOND) + stray) == lifecycle(SECOND)
    assert not stream.is_over
    assert stream.take_output(echo(SECOND) + RESULT) == echo(SECOND) + RESULT
    assert stream.is_over


def test_a_process_that_repeats_nothing_is_believed() -> None:
    """If the first turn was not echoed, the first result after a prompt ends the turn."""
    stream = TurnStream()
    stream.begin_turn(b"One.", FIRST)
    stream.take_output(RESULT)
    stream.begin_turn(b"Two.", SECOND)
    assert stream.take_output(RESULT) == RESULT
    assert stream.is_over


def test_the_sessions_own_result_ends_a_turn_also_by_an_error() -> None:
    """A sub-agent's result ends no turn; a result with an error ends the turn, which has failed."""
    stream = in_second_turn()
    stream.take_output(echo(SECOND) + b'{"type":"result","parent_tool_use_id":"toolu_1"}\n')
    assert not stream.is_over
    stream.take_output(b'{"type":"result","is_error":true}\n')
    assert (stream.is_over, stream.has_failed) == (True, True)


def test_a_line_over_the_limit_is_passed_on_unread() -> None:
    """A line over the limit is passed on and never read as a result."""
    stream = in_second_turn()
    long = b'{"type":"result","x":"' + b"x" * LINE_LIMIT_BYTES
    assert stream.take_output(echo(SECOND) + long) == echo(SECOND) + long
    assert stream.take_output(b'"}\n{"type":"system"}\n') == b'"}\n{"type":"system"}\n'
    assert not stream.is_over
    stream.take_output(RESULT)
    assert stream.is_over


def test_a_result_behind_other_bytes_ends_the_turn_and_a_quoted_one_does_not() -> None:
    """A terminal's title before a result does not hide it, and a quoted result ends no turn."""
    stream, title = in_second_turn(), b"\x1b]0;at work\x07"
    stream.take_output(title + echo(SECOND).replace(b"{", b'{"session_id":"s",', 1))
    stream.take_output(b'log: {"type":"result","result":"x"}\n"{\\"type\\":\\"result\\",\\"session_id\\":1}"\n')
    assert not stream.is_over
    line = title + RESULT.replace(b"{", b'{"session_id":"s",')
    assert (stream.take_output(line), stream.is_over) == (line, True)


def test_a_half_line_waits_for_its_end() -> None:
    """Half a line is held back, and kept if the process ends."""
    stream = in_second_turn()
    assert stream.take_output(b'{"type":"assi') == b""
    assert stream.take_rest() == b'{"type":"assi'


def task(kind: str, **fields: object) -> bytes:
    return json.dumps({"type": "system", "subtype": f"task_{kind}", "task_id": "t1", **fields}).encode() + b"\n"


@pytest.mark.parametrize(
    ("tasks", "is_over"),
    [
        ([task("started", is_backgrounded=False)], True),
        ([task("started", is_backgrounded=True)], False),
        ([task("started", is_backgrounded=True), task("notification", status="completed")], False),
        ([task("started", is_backgrounded=False), task("updated", patch={"is_backgrounded": True})], False),
        ([task("started")], False),
        ([task("started"), task("notification", status="completed")], True),
        ([task("updated", patch=[]), task("started", is_backgrounded=False)], True),
    ],
)
def test_a_turn_that_began_something_in_the_background_is_not_over_with_its_result(
    tasks: list[bytes], *, is_over: bool
) -> None:
    """A result does not end a turn with a background task, except if the result is an error."""
    stream = in_second_turn()
    stream.take_output(echo(SECOND) + b"".join(tasks) + RESULT)
    assert stream.is_over is is_over
    stream.take_output(RESULT.replace(b"false", b"true"))
    assert stream.is_over
    stream.begin_turn(b"Three.", FIRST)
    stream.take_output(echo(FIRST) + RESULT)
    assert stream.is_over
