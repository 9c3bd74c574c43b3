"""The input of a workflow: wrong input fails the workflow at once and names the field."""

import inspect
import re
from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, ValidationError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from septet.contracts.seal import UNSEALED_INPUT, refusal_of
from septet.contracts.wording import describe_mistakes

NOT_VALID: Final = "The input is not valid: "
Run = TypeVar("Run", bound=Callable[..., Any])
Input = TypeVar("Input", bound=BaseModel)


def takes_raw_input(run: Run) -> Run:
    """Let the SDK pass the input undecoded, so that `run` itself can refuse it.

    Input that the SDK cannot decode would fail the workflow task for ever. The SDK passes raw payloads if the
    signature has exactly one parameter of type `RawValue`; more inputs still reach `run`.
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
    """Return the input of a workflow.

    Args:
        workflow_id: The workflow's id.
        inputs: The inputs, the first one undecoded.
        kind: The type of the input.
        ids: The pattern of valid ids.
        by_workflow: Whether a workflow of Septet gave the input: the workflow may be of a later release, whose
            unknown fields are accepted. In a person's input, unknown fields are refused.

    Raises:
        ApplicationError: Of type `InvalidInput`, non-retryable: location and message, never the value. Of type
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
    """Return the failure of a workflow whose input is not valid; `message` names the field, never the value."""
    return ApplicationError(f"{NOT_VALID}{message}.", type="InvalidInput", non_retryable=True)
