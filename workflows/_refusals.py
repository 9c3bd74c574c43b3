"""How an update is refused: in words that every client shows, and of a type that ours knows."""

from typing import Final

from temporalio.exceptions import ApplicationError

REFUSED: Final = "RefusedTransition"


def refusal(message: str, remedy: str = "") -> ApplicationError:
    """Return the refusal of an update: a validator that raises it leaves no trace in the history."""
    return ApplicationError(f"{message} {remedy}".strip(), message, remedy, type=REFUSED, non_retryable=True)


def invalid_update(message: str) -> ApplicationError:
    """Return the refusal of an update whose input is not valid."""
    return ApplicationError(message, message, "", type="InvalidInput", non_retryable=True)
