from collections.abc import Mapping

from septet.telemetry.metrics import STEPS
from septet.telemetry.recorder import OTHER, Recorder


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
