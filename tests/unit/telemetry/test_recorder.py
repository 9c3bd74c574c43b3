from collections.abc import Mapping

import pytest

from septet.telemetry.metrics import METRICS, SEAT_WAIT, STEPS, Metric
from septet.telemetry.recorder import OTHER, Recorder


def test_nothing_is_recorded_until_somebody_takes_it() -> None:
    """Without a sink a value is dropped, and nobody has to find one out."""
    recorder = Recorder()
    recorder.record(SEAT_WAIT, 3.0)
    taken: list[tuple[Metric, float]] = []
    assert not recorder.is_on
    recorder.send_to(lambda metric, value, _: taken.append((metric, value)))
    recorder.record(SEAT_WAIT, 4.0)
    assert (recorder.is_on, taken) == (True, [(SEAT_WAIT, 4.0)])


def test_a_label_has_a_hundred_values_and_no_more() -> None:
    """Whatever names models, agents or projects have: the hundred-and-first is counted among the others."""
    recorder, taken = Recorder(), list[Mapping[str, str]]()
    recorder.send_to(lambda *value: taken.append(value[2]))
    for number in range(102):
        recorder.record(STEPS, step="build_plan", outcome="done", agent=f"agent-{number}")
    recorder.record(STEPS, step="build_plan", outcome="done", agent="agent-7")
    recorder.record(STEPS, step="x" * 200, outcome="done", agent=None)
    assert [labels["agent"] for labels in taken[99:]] == ["agent-99", OTHER, OTHER, "agent-7", OTHER]
    assert len(taken[-1]["step"]) == 80


def test_a_value_without_its_labels_is_a_mistake() -> None:
    """A series that a label is missing of, or has one too many, is refused where it is recorded."""
    recorder = Recorder()
    recorder.send_to(lambda *_: None)
    with pytest.raises(ValueError, match="septet_steps has the labels"):
        recorder.record(STEPS, step="build_plan")


def test_names_are_those_that_prometheus_wants() -> None:
    """Each metric is named once, for us, with its unit last; counters get their `_total` from Prometheus."""
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert metric.name.startswith("septet_")
        assert not metric.name.endswith("_total")
        assert bool(metric.buckets) == metric.name.endswith(("_seconds", "_usd"))
