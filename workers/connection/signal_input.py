"""Signals that their handlers do not take are dropped: an error there would hold the workflow up for ever."""

import inspect
from collections.abc import Callable, Sequence
from types import UnionType
from typing import Any

from temporalio import workflow
from temporalio.worker import (
    HandleSignalInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)


class SignalInputChecks(Interceptor):
    """Drops signals without the input that their handlers need, as the SDK does with input that it cannot read."""

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002 -- the SDK's own name
    ) -> type[WorkflowInboundInterceptor]:
        """Return what stands before the handlers of workflows."""
        del input
        return _SignalInputChecksInbound


class _SignalInputChecksInbound(WorkflowInboundInterceptor):
    async def handle_signal(self, input: HandleSignalInput) -> None:  # noqa: A002 -- the SDK's own name
        """Hand the signal on, or log that it is dropped; a handler has the name of its signal."""
        if not takes(getattr(workflow.instance(), input.signal), input.args):
            workflow.logger.error(f"The input of signal {input.signal} is not what it takes, dropping the signal")
            return
        await super().handle_signal(input)


def takes(handler: Callable[..., Any], args: Sequence[object]) -> bool:
    """Say whether a bound handler can be called with these arguments: with so many, and of these types.

    The SDK decodes by the handler's types, but not what comes as bytes or as nothing at all.
    """
    signature = inspect.signature(handler)
    try:
        given = signature.bind(*args).arguments
    except TypeError:
        return False
    return all(_is_of(value, signature.parameters[name].annotation) for name, value in given.items())


def _is_of(value: object, annotation: object) -> bool:
    """Say whether a value is of a type; what is not a plain type or a union of such takes anything."""
    if annotation in (Any, inspect.Parameter.empty) or not isinstance(annotation, type | UnionType):
        return True
    return isinstance(value, annotation)
