"""The input of an update: wrong input refuses the update in Septet's words, also for Temporal's command line."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter, ValidationError
from temporalio.common import RawValue

from septet.contracts.seal import refusal_of
from septet.contracts.wording import describe_mistakes
from workflows.wire.refusals import invalid_update, unsealed_update

Handler = TypeVar("Handler", bound=Callable[..., Any])


def reads_input(name: str, kind: type[Any], *, by_worker: bool = False) -> Callable[[Handler], Handler]:
    """Pass an update's input to its handler or validator as a value of a type.

    The SDK passes the input undecoded, like a workflow's input (record 28): otherwise the SDK would refuse
    undecodable input in the words of its libraries.

    Args:
        name: The update's name, for messages.
        kind: The type of the input; a missing input is read as an empty object.
        by_worker: Whether a worker of Septet sends the update: the worker may be of a later release, whose unknown
            fields are accepted. In a person's update, unknown fields are refused.

    Raises:
        ApplicationError: The update is refused: the message names update and field, never the value.
    """
    unknown: Literal["ignore", "forbid"] = "ignore" if by_worker else "forbid"

    def decorate(handler: Handler) -> Handler:
        if inspect.iscoroutinefunction(handler):

            @wraps(handler)
            async def coroutine(workflow: object, *inputs: object) -> object:
                return await handler(workflow, _value(name, kind, inputs, unknown))

            return _with_raw_signature(coroutine, handler)

        @wraps(handler)
        def function(workflow: object, *inputs: object) -> object:
            return handler(workflow, _value(name, kind, inputs, unknown))

        return _with_raw_signature(function, handler)

    return decorate


def _with_raw_signature(wrapper: Callable[..., Any], handler: Handler) -> Handler:
    """Give the handler one parameter of type `RawValue`, so that the SDK decodes nothing."""
    parameters = [
        inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
        inspect.Parameter("call", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=RawValue),
    ]
    wrapper.__annotations__ = {"call": RawValue, "return": handler.__annotations__.get("return")}
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    del wrapper.__wrapped__  # type: ignore[attr-defined]
    return wrapper  # type: ignore[return-value]


def _value(name: str, kind: type[Any], inputs: tuple[object, ...], unknown: Literal["ignore", "forbid"]) -> object:
    if len(inputs) > 1:
        raise invalid_update(f"{name}: {len(inputs)} inputs were given. Give one JSON object.")
    raw = inputs[0] if inputs else None
    if isinstance(raw, RawValue) and (reason := refusal_of(raw.payload.metadata)) is not None:
        raise unsealed_update(reason)
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    try:
        content = raw.payload.data if isinstance(raw, RawValue) else b""
        return adapter.validate_json(content or b"{}", extra=unknown)
    except ValidationError as error:
        raise invalid_update(f"{name}: {describe_mistakes(error, getattr(kind, 'model_fields', ()))}.") from None
