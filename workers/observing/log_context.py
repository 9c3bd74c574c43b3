"""The step, agent and run that what is logged during an activity belongs to."""

from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from septet.contracts.lanes import SummariseCall
from septet.contracts.steps import FinalizeCall, StepCall


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
