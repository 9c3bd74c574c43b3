"""What observes clients and workers: the context of logs, and what settings turn on; the rest is not imported."""

from typing import TYPE_CHECKING

from septet.errors import InvalidInputError
from septet.settings import Settings

if TYPE_CHECKING:
    from temporalio.client import Interceptor as ClientInterceptor
    from temporalio.worker import Interceptor as WorkerInterceptor

    Observers = list[ClientInterceptor | WorkerInterceptor]


def observers(settings: Settings, *, serves: bool) -> "Observers":
    """Return the interceptors of a client and, where it `serves`, of its workers; the first one is outermost.

    Raises:
        InvalidInputError: Traces are wanted, and what makes them is not installed.
    """
    found: Observers = []
    if settings.traces is not None:
        client_traces, worker_traces = _tracing(settings, settings.traces)
        found += [client_traces, worker_traces] if serves else [client_traces]
    if serves:
        from workers.observing.log_context import LogContext

        found.append(LogContext())
    if serves and settings.metrics is not None:
        from workers.observing.metrics import StepMetrics

        found.append(StepMetrics())
    return found


def _tracing(settings: Settings, address: str) -> "Observers":
    try:
        from workers.observing.traces import tracing
    except ModuleNotFoundError as error:
        remedy = "Install them with Septet: pip install 'septet[otel]'."
        raise InvalidInputError(
            f"SEPTET_TRACES needs packages that are missing: {error}.", remedy=remedy
        ) from error
    return list(tracing(settings, address))
