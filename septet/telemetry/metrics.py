"""All metrics of Septet, with their names, labels and meanings."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_SECONDS: Final = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 14_400.0, 86_400.0)
_REQUEST_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 180.0)
_DOLLARS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0)


class MetricKind(StrEnum):
    """The kind of a metric, which decides how Prometheus combines its values."""

    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name, kind, labels and meaning."""

    name: str
    """The name without `_total`, which Prometheus adds to a counter's name."""
    help: str
    labels: tuple[str, ...] = ()
    """The labels, whose values come from small sets: never an id, a path or a text of users."""
    kind: MetricKind = MetricKind.COUNTER
    buckets: tuple[float, ...] = ()

    @property
    def exposed(self) -> str:
        """The metric's name in Prometheus, to which a histogram adds `_bucket`, `_sum` and `_count`."""
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
