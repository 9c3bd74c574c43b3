"""The recorder of metrics, which drops all values until a worker sets a sink."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from septet.telemetry.metrics import Metric

Sink = Callable[[Metric, float, Mapping[str, str]], None]
"""A function that receives a metric, one value of the metric, and the value's labels."""

_MOST_VALUES: Final = 100
OTHER: Final = "other"
"""What replaces each new value of a label after the label's first hundred values."""


@dataclass(slots=True)
class Recorder:
    """Sends values of metrics to a sink, and limits how many values a label has; all threads may use it."""

    _sink: Sink | None = None
    _values: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """For each metric and label, the values so far."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_on(self) -> bool:
        """Whether a sink is set; without one, a caller need not compute values."""
        return self._sink is not None

    def send_to(self, sink: Sink | None) -> None:
        """Send values to a sink from now on; with `None`, drop all values."""
        self._sink = sink

    def record(self, metric: Metric, value: float = 1, **labels: str | None) -> None:
        """Add `value` to a counter or a histogram, or set a gauge to `value`; without a sink, do nothing.

        Args:
            metric: A metric of `METRICS`.
            value: For a counter a whole number, for a histogram a value in the unit that ends the metric's name.
            labels: A value for each label of the metric; `None` and empty values become `unknown`.

        Raises:
            ValueError: The labels are not the labels of the metric.
        """
        sink = self._sink
        if sink is None:
            return
        if set(labels) != set(metric.labels):
            raise ValueError(f"{metric.name} has the labels {metric.labels}, and not {tuple(labels)}")
        sink(metric, value, {label: self._limit(metric, label, text) for label, text in labels.items()})

    def _limit(self, metric: Metric, label: str, text: str | None) -> str:
        """Return a label's value; a new value after the first hundred becomes `other`."""
        value = (text or "unknown")[:80]
        with self._lock:
            values = self._values.setdefault((metric.name, label), set())
            if value not in values and len(values) >= _MOST_VALUES:
                return OTHER
            values.add(value)
        return value


RECORDER: Final = Recorder()
"""The recorder of this process."""
