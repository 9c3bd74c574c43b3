"""Polls that Temporal's retries repeat: a poll waits as long as needed, and the history does not grow."""

from datetime import timedelta
from typing import Final

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from septet.settings import Settings

_MESSAGE_LIMIT: Final = 1000
_DOUBLINGS: Final = 30


def not_yet(why: str, settings: Settings, *, kind: str = "NotYet", rarely: bool = False) -> ApplicationError:
    """Return the failure that makes Temporal poll again after a growing pause.

    Users see its message as the reason why the workflow waits.

    Args:
        why: The state that was read.
        settings: The settings of the pauses.
        kind: The failure's type.
        rarely: Take the longest pause at once: only a person can help.
    """
    first, longest = settings.look_seconds, settings.longest_look_seconds
    grown = first * 2.0 ** min(activity.info().attempt - 1, _DOUBLINGS)
    pause = longest if rarely else min(grown, longest)
    return ApplicationError(
        why[:_MESSAGE_LIMIT],
        type=kind,
        next_retry_delay=timedelta(seconds=pause),
        category=ApplicationErrorCategory.BENIGN,
    )
