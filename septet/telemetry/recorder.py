"""Where values are recorded: nowhere, until a worker that serves metrics says where."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from septet.telemetry.metrics import Metric

Sink = Callable[[Metric, float, Mapping[str, str]], None]
"""Takes a value of a metric, with its labels."""

_MOST_VALUES: Final = 100
_LONGEST_VALUE: Final = 80
_UNKNOWN: Final = "unknown"
OTHER: Final = "other"
"""What a label says in place of a value after the first hundred."""


@dataclass(slots=True)
class Recorder:
    """Hands values on to a sink, with labels of few values; safe for all threads."""

    _sink: Sink | None = None
    _values: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """By metric and label: the values that it has had."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_on(self) -> bool:
        """Whether somebody takes the values; until then none has to be found out."""
        return self._sink is not None

    def send_to(self, sink: Sink | None) -> None:
        """Hand values to this sink from now on; `None`: to nobody."""
        self._sink = sink

    def record(self, metric: Metric, value: float = 1, **labels: str | None) -> None:
        """Count `value`, add it to a histogram, or set a gauge to it. Without a sink it does nothing.

        Args:
            metric: One of the table.
            value: Of a counter a whole number, of a histogram in the unit that its name ends in.
            labels: A value for each label of the metric; `None` and an empty one become `unknown`.

        Raises:
            ValueError: The labels are not those of the metric.
        """
        sink = self._sink
        if sink is None:
            return
        if set(labels) != set(metric.labels):
            raise ValueError(f"{metric.name} has the labels {metric.labels}, and not {tuple(labels)}")
        sink(metric, value, {label: self._limit(metric, label, text) for label, text in labels.items()})

    def _limit(self, metric: Metric, label: str, text: str | None) -> str:
        """Return a label's value; one more than a hundred would be a series too many."""
        value = (text or _UNKNOWN)[:_LONGEST_VALUE]
        with self._lock:
            values = self._values.setdefault((metric.name, label), set())
            if value not in values and len(values) >= _MOST_VALUES:
                return OTHER
            values.add(value)
        return value


RECORDER: Final = Recorder()
"""That of this process."""
