"""Each reader of foreign text takes time that grows linearly with the text's length."""

import time
from collections.abc import Callable
from functools import partial

import pytest
from fakes.pumps import PUMPS, Reader, follow_stream, pumped, readers, recorded_lines

from septet.agents.clis.registry import ADAPTERS
from septet.system.masking import hide, reveal

SHORT, LONG = 1_500, 6_000
READERS = readers()
SAMPLE = {"stream of claude", "stream of codex"}
NAMES = [
    pytest.param(name, marks=[pytest.mark.release] if name.startswith("stream of ") and name not in SAMPLE else [])
    for name in READERS
]
"""Two of the streams, because the readers of the CLIs share most of their code."""
WORTH_A_LOOK_SECONDS = 0.03
MOST_GROWTH = 9.0
"""The largest allowed growth for four times the length: linear time gives 4, quadratic time 16."""
HIDDEN = "kV8zqW2sTn4Lb7"


def seconds(read: Callable[[], object]) -> float:
    """Return the processor time of this thread, without other processes' time."""
    began = time.thread_time()
    read()
    return time.thread_time() - began


def growth(short: Callable[[], object], long: Callable[[], object]) -> float:
    """Return the growth of the time from the short to the long text, or 0 if the long text is fast enough."""
    took = seconds(long)
    if took < WORTH_A_LOOK_SECONDS:
        return 0
    return min(took, seconds(long)) / max(seconds(short), seconds(short), 1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_four_times_the_text_takes_four_times_as_long(name: str) -> None:
    """No repetitive text takes quadratic time, which would stop a process that serves others."""
    read: Reader = READERS[name]
    hide([HIDDEN])
    try:
        for pump in PUMPS:
            short, long = pumped(pump, SHORT), pumped(pump, LONG)
            assert growth(partial(read, short), partial(read, long)) < MOST_GROWTH, pump
    finally:
        reveal([HIDDEN])


@pytest.mark.parametrize(
    "cli", [pytest.param(cli, marks=[pytest.mark.release] * (cli != "claude")) for cli in ADAPTERS]
)
def test_four_times_the_events_take_four_times_as_long(cli: str) -> None:
    """Each recorded event can be repeated many times in linear time."""
    for line in recorded_lines(cli):
        many = [line + b"\n"] * (20 + 10_000 // len(line))
        short, long = b"".join(many), b"".join(many * 4)
        grown = growth(partial(follow_stream, cli, short), partial(follow_stream, cli, long))
        assert grown < MOST_GROWTH, (cli, line[:100])


@pytest.mark.parametrize("name", READERS)
def test_brackets_inside_one_another_are_no_defect(name: str) -> None:
    """A reader of deeply nested brackets ends without a crash."""
    for unit in ("[", '{"a":', '{"type":"assistant","message":', '[{"a":'):
        READERS[name](unit * 5000 + "1")
        closing = {"[": "]", '[{"a":': "}]"}.get(unit, "}")
        READERS[name](unit * 900 + "1" + closing * 900)
