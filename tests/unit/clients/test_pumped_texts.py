"""Whatever strangers write is read in a time that grows with its length and not faster, by all that serve others."""

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
"""Of the streams two: what the CLIs' readers share takes nearly all of their time."""
WORTH_A_LOOK_SECONDS = 0.03
MOST_GROWTH = 9.0
"""For four times the length: in linear time it is 4, in quadratic 16."""
HIDDEN = "kV8zqW2sTn4Lb7"


def seconds(read: Callable[[], object]) -> float:
    """Return the processor's time that this thread takes: others on the machine count nothing."""
    began = time.thread_time()
    read()
    return time.thread_time() - began


def growth(short: Callable[[], object], long: Callable[[], object]) -> float:
    """Return how much longer the long text takes; 0 where nobody would notice."""
    took = seconds(long)
    if took < WORTH_A_LOOK_SECONDS:
        return 0
    return min(took, seconds(long)) / max(seconds(short), seconds(short), 1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_four_times_the_text_takes_four_times_as_long(name: str) -> None:
    """No text of those that make readers go back and forth does: a process that serves others stands still meanwhile."""
    read: Reader = READERS[name]
    hide([HIDDEN])
    try:
        for pump in PUMPS:
            short, long = pumped(pump, SHORT), pumped(pump, LONG)
            grown = growth(partial(read, short), partial(read, long))
            assert grown < MOST_GROWTH, pump
    finally:
        reveal([HIDDEN])


@pytest.mark.parametrize(
    "cli", [pytest.param(cli, marks=[pytest.mark.release] * (cli != "claude")) for cli in ADAPTERS]
)
def test_four_times_the_events_take_four_times_as_long(cli: str) -> None:
    """Each kind of event that the CLI was seen to print may come any number of times."""
    for line in recorded_lines(cli):
        many = [line + b"\n"] * (20 + 10_000 // len(line))
        short, long = b"".join(many), b"".join(many * 4)
        grown = growth(partial(follow_stream, cli, short), partial(follow_stream, cli, long))
        assert grown < MOST_GROWTH, (cli, line[:100])


@pytest.mark.parametrize("name", READERS)
def test_brackets_inside_one_another_are_no_defect(name: str) -> None:
    """However deep they are, what reads them says so or passes over them."""
    for unit in ("[", '{"a":', '{"type":"assistant","message":', '[{"a":'):
        READERS[name](unit * 5000 + "1")
        closing = {"[": "]", '[{"a":': "}]"}.get(unit, "}")
        READERS[name](unit * 900 + "1" + closing * 900)
