"""What observes a worker, as its settings say: nothing is imported for what they leave off."""

from temporalio.worker import Interceptor

from septet.settings import Settings


def worker_interceptors(settings: Settings) -> list[Interceptor]:
    """Return the interceptors for the metrics of a worker, where it serves any."""
    if settings.metrics is None:
        return []
    from workers.metrics import StepMetrics

    return [StepMetrics()]
