"""Read the input of workflows and updates; refuse wrong input with a message that names the field."""

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from septet.contracts.seal import UNSEALED_INPUT, refusal_of
from septet.contracts.wording import describe_mistakes
from workflows.wire.failures import invalid_update, unsealed_update

NOT_VALID: Final = "The input is not valid: "
Run = TypeVar("Run", bound=Callable[..., Any])
Input = TypeVar("Input", bound=BaseModel)


def takes_raw_input(run: Run) -> Run:
    """Let `run` get its input undecoded, so that `run` itself can refuse the input.

    Otherwise, undecodable input would fail the workflow task again and again. The SDK passes raw payloads if the
    signature has exactly one parameter of type `RawValue`; further inputs still reach `run`.
    """
    first = [*inspect.signature(run).parameters.values()][:2]
    run.__annotations__["order"] = RawValue
    run.__signature__ = inspect.Signature(first)  # type: ignore[attr-defined]
    return run


def parse_input(
    workflow_id: str,
    inputs: tuple[RawValue | None, *tuple[object, ...]],
    kind: type[Input],
    ids: str = "[A-Za-z0-9._-]{1,64}",
    *,
    by_workflow: bool = False,
) -> Input:
    """Decode and check the input of a workflow.

    Args:
        inputs: The inputs, the first one undecoded.
        by_workflow: Whether a workflow of Septet gave the input: the workflow may be of a later release, whose
            unknown fields are accepted. In a person's input, unknown fields are refused.

    Raises:
        ApplicationError: Of type `InvalidInput`, non-retryable: it names field and mistake, not the value. Of type
            `UnsealedInput` if a worker that requires seals has marked the input as unsealed.
    """
    if workflow_id in {".", ".."} or not re.fullmatch(ids, workflow_id):
        raise invalid_input(f"the workflow id must match {ids}")
    order, *rest = inputs
    if isinstance(order, RawValue) and (reason := refusal_of(order.payload.metadata)) is not None:
        raise ApplicationError(reason, type=UNSEALED_INPUT, non_retryable=True)
    if order is None:
        raise invalid_input('repository is missing. Give one JSON object, such as {"repository": "…", "issue": 1}')
    if rest:
        raise invalid_input(f"{len(rest) + 1} inputs were given. Give one JSON object")
    try:
        unknown: Literal["ignore", "forbid"] = "ignore" if by_workflow else "forbid"
        return kind.model_validate_json(order.payload.data or b"null", extra=unknown)
    except ValidationError as error:
        raise invalid_input(describe_mistakes(error, kind.model_fields)) from None


def invalid_input(message: str) -> ApplicationError:
    """Return the error for a workflow's invalid input; `message` names the field, never the value."""
    return ApplicationError(f"{NOT_VALID}{message}.", type="InvalidInput", non_retryable=True)


Handler = TypeVar("Handler", bound=Callable[..., Any])


def reads_input(name: str, kind: type[Any], *, by_worker: bool = False) -> Callable[[Handler], Handler]:
    """Return a decorator that decodes an update's input for its handler or validator.

    The SDK passes the input undecoded (decision record 28). Otherwise the SDK would refuse undecodable input with
    messages of its libraries.

    Args:
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
    """Give the wrapper one parameter of type `RawValue`, so that the SDK passes the input undecoded."""
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
