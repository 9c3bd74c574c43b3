from collections.abc import Mapping

import pytest

from septet.telemetry.metrics import METRICS, SEAT_WAIT, STEPS, Metric
from septet.telemetry.recorder import OTHER, Recorder


def test_nothing_is_recorded_until_somebody_takes_it() -> None:
    """Without a sink a value is dropped, and `is_on` is false, so that callers need not compute a value."""
    recorder = Recorder()
    recorder.record(SEAT_WAIT, 3.0)
    taken: list[tuple[Metric, float]] = []
    assert not recorder.is_on
    recorder.send_to(lambda metric, value, _: taken.append((metric, value)))
    recorder.record(SEAT_WAIT, 4.0)
    assert (recorder.is_on, taken) == (True, [(SEAT_WAIT, 4.0)])


def test_a_label_has_a_hundred_values_and_no_more() -> None:
    """After a hundred values of a label further values count as one other value."""
    recorder, taken = Recorder(), list[Mapping[str, str]]()
    recorder.send_to(lambda *value: taken.append(value[2]))
    for number in range(102):
        recorder.record(STEPS, step="build_plan", outcome="done", agent=f"agent-{number}")
    recorder.record(STEPS, step="build_plan", outcome="done", agent="agent-7")
    recorder.record(STEPS, step="x" * 200, outcome="done", agent=None)
    assert [labels["agent"] for labels in taken[99:]] == ["agent-99", OTHER, OTHER, "agent-7", OTHER]
    assert len(taken[-1]["step"]) == 80


def test_a_value_without_its_labels_is_a_mistake() -> None:
    """A record with a missing label is refused."""
    recorder = Recorder()
    recorder.send_to(lambda *_: None)
    with pytest.raises(ValueError, match="septet_steps has the labels"):
        recorder.record(STEPS, step="build_plan")


def test_names_are_those_that_prometheus_wants() -> None:
    """Each metric has a unique name with `septet_` and without `_total`; a histogram's name ends with its unit."""
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert metric.name.startswith("septet_")
        assert not metric.name.endswith("_total")
        assert bool(metric.buckets) == metric.name.endswith(("_seconds", "_usd"))
