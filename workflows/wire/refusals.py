"""The refusals of updates: every client shows their words, and Septet's clients know their types."""

from typing import Final

from temporalio.exceptions import ApplicationError

from septet.contracts.seal import UNSEALED_INPUT

REFUSED: Final = "RefusedTransition"


def refusal(message: str, remedy: str = "") -> ApplicationError:
    """Return the refusal of an update: a validator that raises it leaves no trace in the history."""
    return ApplicationError(f"{message} {remedy}".strip(), message, remedy, type=REFUSED, non_retryable=True)


def invalid_update(message: str) -> ApplicationError:
    """Return the refusal of an update whose input is not valid."""
    return ApplicationError(message, message, "", type="InvalidInput", non_retryable=True)


def unsealed_update(message: str) -> ApplicationError:
    """Return the refusal of an update that is not sealed."""
    return ApplicationError(message, message, "", type=UNSEALED_INPUT, non_retryable=True)
