"""Looks that are repeated by Temporal's own retries: they wait for as long as it takes and grow no history."""

from datetime import timedelta
from typing import Final

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from septet.settings import Settings

_MESSAGE_LIMIT: Final = 1000
_DOUBLINGS: Final = 30


def not_yet(why: str, settings: Settings, *, kind: str = "NotYet", rarely: bool = False) -> ApplicationError:
    """Return the failure by which a look is taken again after a pause that grows.

    What it says is shown as what the workflow waits for.

    Args:
        why: What was seen.
        settings: Of the pauses.
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
