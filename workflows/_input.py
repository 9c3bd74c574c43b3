"""Wrong input fails the work order at once and names the field."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import ValidationError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from septet.contracts.names import ORDER_ID
from septet.contracts.order import WorkOrderInput

Run = TypeVar("Run", bound=Callable[..., Any])


def takes_raw_input(run: Run) -> Run:
    """Let the SDK hand over the input undecoded, so that `run` itself can refuse it.

    Input that the SDK cannot decode would fail the workflow task for ever. It passes on raw payloads where the
    signature shows exactly one parameter of type `RawValue`; more inputs than one still reach `run`.
    """
    first = [*inspect.signature(run).parameters.values()][:2]
    run.__annotations__["order"] = RawValue
    run.__signature__ = inspect.Signature(first)  # type: ignore[attr-defined]
    return run


def checked_input(workflow_id: str, order: RawValue | None, rest: tuple[object, ...]) -> WorkOrderInput:
    """Return the work order's input.

    Raises:
        ApplicationError: Of type `InvalidInput`, non-retryable: location and message, never the value.
    """
    if not ORDER_ID.fullmatch(workflow_id):
        raise _invalid("the workflow id must match [A-Za-z0-9._-]{1,64}")
    if order is None:
        raise _invalid('repository: Field required. Give one JSON object, such as {"repository": "…", "issue": 1}')
    if rest:
        raise _invalid(f"{len(rest) + 1} inputs were given. Give one JSON object")
    try:
        return WorkOrderInput.model_validate_json(order.payload.data or b"null")
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise _invalid("; ".join(_said(detail["loc"], detail["msg"]) for detail in found[:10])) from None


def _said(location: tuple[int | str, ...], message: str) -> str:
    where = ".".join(str(part) for part in location) or "input"
    return f"{where}: {message}"


def _invalid(message: str) -> ApplicationError:
    return ApplicationError(f"The input is not valid: {message}.", type="InvalidInput", non_retryable=True)
