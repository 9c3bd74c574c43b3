"""What observes a worker: the context of its log, and what its settings turn on; the rest is not imported."""

from temporalio.worker import Interceptor

from septet.settings import Settings


def worker_interceptors(settings: Settings) -> list[Interceptor]:
    """Return the interceptors of a worker: for its logs, and for its metrics where it serves any."""
    from workers.log_context import LogContext

    found: list[Interceptor] = [LogContext()]
    if settings.metrics is not None:
        from workers.metrics import StepMetrics

        found.append(StepMetrics())
    return found
