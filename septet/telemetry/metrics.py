"""All metrics of Septet, with their names, labels and meanings, and the recorder of their values."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

_SECONDS: Final = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 14_400.0, 86_400.0)
_REQUEST_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 180.0)
_DOLLARS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0)


class MetricKind(StrEnum):
    """The way in which the values of a metric are combined."""

    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Metric:
    """The description of one metric for Prometheus."""

    name: str
    """The name without `_total`, which Prometheus adds to a counter's name."""
    help: str
    labels: tuple[str, ...] = ()
    """The labels, whose values come from small sets: never an id, a path or a text of users."""
    kind: MetricKind = MetricKind.COUNTER
    buckets: tuple[float, ...] = ()

    @property
    def exposed(self) -> str:
        """The name of the metric in Prometheus; a histogram's series end in `_bucket`, `_sum` and `_count`."""
        return f"{self.name}_total" if self.kind is MetricKind.COUNTER else self.name


def _histogram(name: str, text: str, labels: tuple[str, ...], buckets: tuple[float, ...]) -> Metric:
    return Metric(name, text, labels, MetricKind.HISTOGRAM, buckets)


STEPS: Final = Metric("septet_steps", "Attempts at steps that have a verdict", ("step", "agent", "outcome"))
ANSWERS: Final = Metric("septet_answers", "Answers that were read", ("step", "agent", "parsed_by"))
FINALIZER_RUNS: Final = Metric(
    "septet_finalizer_runs", "Times that a session was asked for only its answer", ("step", "agent", "outcome")
)
RECOVERIES: Final = Metric(
    "septet_recoveries",
    "Attempts at steps that needed recovery, by the kind of recovery",
    ("step", "agent", "recovered_by"),
)
RESCUES: Final = Metric("septet_rescues", "Rescues: snapshots of work that was not accepted", ("step",))
AGENT_STARTS: Final = Metric("septet_agent_starts", "Starts of agent processes", ("step", "agent"))
AGENT_SECONDS: Final = _histogram(
    "septet_agent_seconds", "How long agents worked on a step", ("step", "agent", "model"), _SECONDS
)
TOKENS: Final = Metric("septet_tokens", "Tokens that agents used", ("agent", "model", "project", "type"))
COST: Final = _histogram(
    "septet_cost_usd",
    "US dollars that a step cost, if its CLI reports it",
    ("agent", "model", "project"),
    _DOLLARS,
)
QUEUE_WAIT: Final = _histogram(
    "septet_queue_wait_seconds", "How long an activity waited for a free slot of its host", ("activity",), _SECONDS
)
SEAT_WAIT: Final = _histogram(
    "septet_seat_wait_seconds", "How long a triaged work order waited for its turn", (), _SECONDS
)
FORGE_REQUESTS: Final = Metric("septet_forge_requests", "Requests to forges", ("host", "outcome"))
FORGE_SECONDS: Final = _histogram(
    "septet_forge_request_seconds", "How long a forge took to begin its answer", ("host",), _REQUEST_SECONDS
)
FORGE_PAUSES: Final = _histogram(
    "septet_forge_pause_seconds", "How long a forge asked Septet to wait", ("host",), _SECONDS
)
PROXY_REFUSALS: Final = Metric(
    "septet_proxy_refusals", "Hosts that the sandbox's proxy refused to an agent run", ("step", "agent")
)
DELIVERIES: Final = Metric(
    "septet_deliveries", "Deliveries of webhooks, by what came of them", ("forge", "outcome")
)
INTAKE_ISSUES: Final = Metric(
    "septet_intake_issues", "Issues that an intake took, or left to another", ("forge", "outcome")
)
COMMENT_COMMANDS: Final = Metric(
    "septet_comment_commands", "Commands in comments, by whether they were obeyed", ("forge", "verb", "outcome")
)
BUDGET_USED: Final = Metric(
    "septet_budget_used", "What counts against a budget now", ("budget", "unit"), MetricKind.GAUGE
)
BUDGET_LIMIT: Final = Metric("septet_budget_limit", "The limit of a budget", ("budget", "unit"), MetricKind.GAUGE)
BUDGET_WAITING: Final = Metric(
    "septet_budget_waiting", "Work orders that wait for a budget", ("budget",), MetricKind.GAUGE
)
PAUSED_LOGINS: Final = Metric(
    "septet_paused_logins", "Logins whose usage limit is reached", ("agent",), MetricKind.GAUGE
)
UNSERVED: Final = Metric(
    "septet_unserved", "1 while no worker takes this part of the work", ("work",), MetricKind.GAUGE
)

METRICS: Final = tuple(each for each in globals().values() if isinstance(each, Metric))
"""All metrics."""


Sink = Callable[[Metric, float, Mapping[str, str]], None]
"""A function that receives a value of a metric, with the labels of the value."""

_MOST_VALUES: Final = 100
OTHER: Final = "other"
"""The value that replaces any value of a label after the first hundred."""


@dataclass(slots=True)
class Recorder:
    """Sends values to a sink, with bounded label values; safe for all threads."""

    _sink: Sink | None = None
    _values: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """The values up to now, by metric and label."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_on(self) -> bool:
        """Whether a sink is set; without a sink, the caller need not compute a value."""
        return self._sink is not None

    def send_to(self, sink: Sink | None) -> None:
        """Send values to this sink from now on; `None` drops them."""
        self._sink = sink

    def record(self, metric: Metric, value: float = 1, **labels: str | None) -> None:
        """Count `value`, add it to a histogram, or set a gauge to it; do nothing without a sink.

        Args:
            metric: A metric of `METRICS`.
            value: For a counter a whole number, for a histogram a value in the unit at the end of its name.
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
