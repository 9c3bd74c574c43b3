"""What observes clients and workers: the context of logs, and what settings turn on; the rest is not imported."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import structlog
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from septet.contracts.lanes import SummariseCall
from septet.contracts.steps import FinalizeCall, StepCall
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
        from workers.observing.observers import LogContext

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


class LogContext(Interceptor):
    """Has each line that is logged during a step say which step and agent it is of."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 -- the SDK's own name
        """Wrap the execution of activities."""
        return _LogContextInbound(next)


class _LogContextInbound(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002, ANN401 -- the SDK's own
        """Execute it with its step and agent bound, for all of its task: how it failed is logged afterwards."""
        structlog.contextvars.bind_contextvars(**step_context(input.args))
        return await self.next.execute_activity(input)


def step_context(args: Sequence[Any]) -> Mapping[str, str]:
    """Return the step and the agent of the input of a step, its finalizer or a lane's summary; else nothing."""
    call = args[0] if args else None
    call = call.call if isinstance(call, FinalizeCall) else call
    if not isinstance(call, StepCall | SummariseCall):
        return {}
    return {"step": call.name, "agent": call.workspace.agent}
