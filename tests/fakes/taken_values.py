"""The recorded values of one metric during a block."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from septet.telemetry.metrics import Metric
from septet.telemetry.recorder import RECORDER


@contextmanager
def taken_values(of: Metric) -> Iterator[list[tuple[float, dict[str, str]]]]:
    taken: list[tuple[float, dict[str, str]]] = []

    def take(metric: Metric, value: float, labels: Mapping[str, str]) -> None:
        if metric is of:
            taken.append((value, dict(labels)))

    RECORDER.send_to(take)
    try:
        yield taken
    finally:
        RECORDER.send_to(None)
