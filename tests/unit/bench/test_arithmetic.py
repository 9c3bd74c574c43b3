"""The arithmetic of the bench: percentiles, verdicts, gaps and long streams."""

import json
from pathlib import Path

import pytest

from bench.figure import Figure, median, percentile
from bench.gap import Batch, added_by, best_of, gaps_ms, program_gaps_ms
from bench.ladder import hostile
from bench.pace import Pace
from bench.stream import TARGETS, grown, read_grown


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 1.0), (1, 1.0), (50, 10.0), (51, 11.0), (95, 19.0), (96, 20.0), (100, 20.0)]
)
def test_a_percentile_is_a_measured_value(percent: float, expected: float) -> None:
    """A percentile is the smallest measured value that enough values do not exceed."""
    assert percentile([float(number) for number in range(20, 0, -1)], percent) == expected


def test_the_median_of_one_value_is_that_value() -> None:
    """The median of one value is the value."""
    assert median([3.5]) == 3.5


def test_there_is_no_percentile_of_nothing() -> None:
    """A percentile without values is an error, not zero."""
    with pytest.raises(ValueError, match="nothing"):
        percentile([], 50)


@pytest.mark.parametrize(
    ("value", "bound", "passed"),
    [(60.0, "at most", True), (60.1, "at most", False), (60.0, "at least", True), (59.9, "at least", False)],
)
def test_a_figure_passes_at_its_target_and_not_beyond(value: float, bound: str, passed: bool) -> None:
    """A figure that equals its target passes; the figure's kind decides which side is better."""
    assert Figure("x", value, "ms", 60.0, bound).passed is passed  # type: ignore[arg-type]


def test_a_figure_without_a_target_neither_passes_nor_fails() -> None:
    """A figure without a target has no verdict."""
    assert Figure("x", 1.0, "ms").passed is None


def test_the_ratio_is_taken_to_the_baseline() -> None:
    """The ratio is the figure divided by its baseline; without a baseline there is no ratio."""
    assert Figure("x", 30.0, "ms", baseline=20.0).ratio == 1.5
    assert Figure("x", 30.0, "ms").ratio is None


def test_gaps_are_between_an_end_and_the_next_start(tmp_path: Path) -> None:
    """A gap lies between the end of one agent and the start of the next in time, not by folder."""
    for folder, started, ended in [
        ("2-b", "00.150", "00.400"),
        ("1-a", "00.000", "00.100"),
        ("10-c", "00.435", "01"),
    ]:
        (tmp_path / folder).mkdir()
        day = "2026-01-01T00:00:"
        record = {"started_at": f"{day}{started}+00:00", "ended_at": f"{day}{ended}+00:00"}
        (tmp_path / folder / "exit.json").write_text(json.dumps(record), encoding="utf-8")
    assert gaps_ms(tmp_path) == pytest.approx([50.0, 35.0])


def test_gaps_of_programs_are_between_their_own_words(tmp_path: Path) -> None:
    """A gap lies between the last time that a program prints and the first time of the next program."""
    for folder, words in [("2-b", "150000000\n300000000\n"), ("1-a", "working\n1000000\n100000000\n")]:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "stderr.log").write_text(words, encoding="utf-8")
    assert program_gaps_ms(tmp_path) == [50.0]


def test_what_the_sandbox_adds_is_held_against_five_milliseconds() -> None:
    """The sandbox's cost is the difference of the two gaps, and its target is 5 ms."""
    assert (added_by("sandbox", 34.0, 30.0).value, added_by("sandbox", 34.0, 30.0).passed) == (4.0, True)
    assert added_by("sandbox", 36.0, 30.0).passed is False


def test_the_best_batch_has_the_smallest_median() -> None:
    """One slow gap does not make a batch worse than a batch that is always slow."""
    good, bad = Batch([10.0, 10.0, 500.0]), Batch([20.0, 20.0, 20.0])
    assert best_of([bad, good]) is good


def test_a_grown_stream_is_the_recording_again_and_again() -> None:
    """The chunks together repeat the recording without a break, up to the requested length."""
    recorded = b"one\ntwo two\nthree\n"
    content = b"".join(grown(recorded, 1000, chunk=7))
    assert len(content) >= 1000
    assert content == (recorded * 100)[: len(content)]


@pytest.mark.parametrize("agent", TARGETS)
def test_each_agents_recording_is_read(agent: str) -> None:
    """The reader reads each agent's long stream at a positive rate."""
    rate, growth = read_grown(agent, 2 * 1024 * 1024)
    assert rate > 0
    assert growth >= 0


def test_chance_is_the_same_for_the_same_seed() -> None:
    """The generated stream depends on the seed only."""
    assert hostile(1) == hostile(1)
    assert hostile(1) != hostile(2)


def test_quick_means_fewer_repetitions() -> None:
    """The quick pace takes the smaller number of repetitions."""
    assert (Pace(quick=True).times(10, 2), Pace().times(10, 2)) == (2, 10)
