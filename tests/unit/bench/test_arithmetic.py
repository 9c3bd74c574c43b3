"""The arithmetic of the bench: percentiles, verdicts, gaps and long streams."""

import json
from pathlib import Path

import pytest

from bench.figure import Figure, percentile
from bench.gap import gaps_ms
from bench.stream import grown


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 1.0), (1, 1.0), (50, 10.0), (51, 11.0), (95, 19.0), (96, 20.0), (100, 20.0)]
)
def test_a_percentile_is_a_measured_value(percent: float, expected: float) -> None:
    """A percentile is the smallest measured value that enough values do not exceed."""
    assert percentile([float(number) for number in range(20, 0, -1)], percent) == expected


@pytest.mark.parametrize(
    ("value", "bound", "passed"),
    [(60.0, "at most", True), (60.1, "at most", False), (60.0, "at least", True), (59.9, "at least", False)],
)
def test_a_figure_passes_at_its_target_and_not_beyond(value: float, bound: str, passed: bool) -> None:
    """A figure that equals its target passes; the figure's kind decides which side is better."""
    assert Figure("x", value, "ms", 60.0, bound).passed is passed  # type: ignore[arg-type]


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


def test_a_grown_stream_is_the_recording_again_and_again() -> None:
    """The chunks together repeat the recording without a break, up to the requested length."""
    recorded = b"one\ntwo two\nthree\n"
    content = b"".join(grown(recorded, 1000, chunk=7))
    assert len(content) >= 1000
    assert content == (recorded * 100)[: len(content)]
