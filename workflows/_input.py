"""Wrong input fails the work order at once and names the field."""

import re
from typing import Final

from pydantic import ValidationError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from septet.contracts.order import WorkOrderInput

_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


def checked_input(workflow_id: str, order: RawValue | None, rest: tuple[RawValue, ...]) -> WorkOrderInput:
    """Return the work order's input.

    Raises:
        ApplicationError: Of type `InvalidInput`, non-retryable: location and message, never the value.
    """
    if not _ID.fullmatch(workflow_id):
        raise _invalid("the workflow id must match [A-Za-z0-9._-]{1,64}")
    if order is None:
        raise _invalid('repository: Field required. Give one JSON object, such as {"repository": "…", "issue": 1}')
    if rest:
        raise _invalid(f"{len(rest) + 1} inputs were given. Give one JSON object")
    try:
        return WorkOrderInput.model_validate_json(order.payload.data)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise _invalid("; ".join(_said(detail["loc"], detail["msg"]) for detail in found[:10])) from None


def _said(location: tuple[int | str, ...], message: str) -> str:
    where = ".".join(str(part) for part in location) or "input"
    return f"{where}: {message}"


def _invalid(message: str) -> ApplicationError:
    return ApplicationError(f"The input is not valid: {message}.", type="InvalidInput", non_retryable=True)
