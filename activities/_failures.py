"""From an error of the core to what Temporal's retry policy and a person can act on."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from septet.contracts.steps import FailureFacts, StepResult
from septet.errors import SeptetError

_LONGEST_DELAY: Final = timedelta(seconds=60)
_TRIES_OF_A_BROKEN_MACHINE: Final = 5
_MESSAGE_LIMIT: Final = 4000


def failure(error: SeptetError, result: StepResult | None = None) -> ApplicationError:
    """Return `error` as Temporal takes it: its type, whether a retry can help, and when.

    A class name is what `non_retryable_error_types` would match, and only exactly; so it is decided here.
    """
    return ApplicationError(
        error.message[:_MESSAGE_LIMIT],
        FailureFacts(remedy=error.remedy, result=result),
        type=type(error).__name__.removesuffix("Error"),
        non_retryable=not error.retryable,
        next_retry_delay=_delay(error) if error.retryable else None,
        category=ApplicationErrorCategory.BENIGN if error.retryable else ApplicationErrorCategory.UNSPECIFIED,
    )


@contextmanager
def failures_told() -> Iterator[None]:
    """Tell errors of the core and of the machine as failures that name cause, place and remedy."""
    try:
        yield
    except SeptetError as error:
        raise failure(error) from error
    except OSError as error:
        raise _machine_failure(error) from error


def _machine_failure(error: OSError) -> ApplicationError:
    """Tell what the machine refused; it is tried a few times, for a moment's shortage passes."""
    return ApplicationError(
        f"{error.strerror or type(error).__name__}: {error.filename or 'no file named'}",
        FailureFacts(remedy="Look at the disk's space and rights, then go on with `septet retry`."),
        type="MachineFailed",
        non_retryable=activity.info().attempt >= _TRIES_OF_A_BROKEN_MACHINE,
        next_retry_delay=timedelta(seconds=2),
    )


def _delay(error: SeptetError) -> timedelta:
    if error.retry_after_seconds is not None:
        return timedelta(seconds=error.retry_after_seconds)
    return min(timedelta(seconds=2.0 ** min(activity.info().attempt, 10)), _LONGEST_DELAY)
