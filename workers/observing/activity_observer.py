"""Observe each activity of a worker: the context of its log lines, its metrics and its traces."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import structlog
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from septet.contracts.lanes import SessionSummary, SummariseCall
from septet.contracts.steps import FailureFacts, FinalizeCall, StepCall, StepResult
from septet.settings import Settings
from workers.observing.metrics import StepMetrics
from workers.observing.runtime import tracing_of


class Listener(Protocol):
    """A receiver of the start and the outcome of each activity."""

    def begin(self) -> None:
        """Handle an activity's start, inside the activity's asyncio task."""

    async def end(self, call: object, outcome: StepResult | SessionSummary) -> None:
        """Handle the outcome of a step, a finalizer or a lane's summary; the outcome may be a final failure."""


def activity_observer(settings: Settings) -> "ActivityObserver":
    """Return the interceptor that observes a worker's activities, with the listeners that the settings want."""
    listeners: list[Listener] = [StepMetrics()] if settings.metrics is not None else []
    if settings.traces is not None:
        listeners.append(tracing_of(settings, settings.traces)[1])
    return ActivityObserver(listeners)


class ActivityObserver(Interceptor):
    """Adds step and agent to each log line of an activity, and passes the activity's outcome to listeners."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self.listeners: Final = listeners

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Return `next`, wrapped so that activities are observed."""
        return _ObservedActivity(next, self.listeners)


class _ObservedActivity(ActivityInboundInterceptor):
    def __init__(self, following: ActivityInboundInterceptor, listeners: Sequence[Listener]) -> None:
        super().__init__(following)
        self._listeners: Final = listeners

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        """Execute the activity, with its context in all log lines of its task."""
        structlog.contextvars.bind_contextvars(**step_context(input.args))
        for listener in self._listeners:
            listener.begin()
        try:
            result = await self.next.execute_activity(input)
        except ApplicationError as error:
            if error.details and isinstance(facts := error.details[0], FailureFacts):
                await self._end(input, facts.result)
            raise
        await self._end(input, result)
        return result

    async def _end(self, input: ExecuteActivityInput, outcome: object) -> None:
        if isinstance(outcome, StepResult | SessionSummary):
            call = input.args[0] if input.args else None
            for listener in self._listeners:
                await listener.end(call, outcome)


def step_context(args: Sequence[Any]) -> Mapping[str, str]:
    """Return the step and the agent that an activity's input names, for log lines; empty for other inputs."""
    call = args[0] if args else None
    call = call.call if isinstance(call, FinalizeCall) else call
    if not isinstance(call, StepCall | SummariseCall):
        return {}
    return {"step": call.name, "agent": call.workspace.agent}
