"""Translate Septet's errors into failures that Temporal's retry policy and people can act on."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

import structlog
from pydantic import JsonValue
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from septet.contracts.steps import FailureFacts, StepResult
from septet.errors import DiskFullError, HostFullError, MachineBusyError, SeptetError, SupersededError
from septet.system.disk import diagnosed
from septet.system.masking import mask, preview
from septet.system.text import cut

OPENING_TRIES: Final = 8
"""The most attempts to open a workspace, in about two minutes; then the user sees the error."""

_log = structlog.get_logger()

_MOST_OF_A_TRY: Final = 300.0
"""Between two failures on a full disk, at most so many seconds count as a wait: agents may work in the rest."""


@dataclass(slots=True)
class DiskWaits:
    """How long each activity has waited because the disk was full, since this worker started."""

    longest_seconds: float = 3600.0
    """How many seconds an activity may wait for a full disk before a person has to act."""
    clock: Callable[[], float] = time.monotonic
    _waits: dict[tuple[str, str, str], tuple[float, float]] = field(default_factory=dict)
    """For each activity: the seconds it has waited, and the time of its last failure on a full disk."""

    def may_last(self) -> bool:
        """Record that the running activity met a full disk; return whether the activity may wait longer."""
        info, now = activity.info(), self.clock()
        key = (info.workflow_id or "", info.workflow_run_id or "", info.activity_id)
        waited, met_at = self._waits.get(key, (0.0, now))
        waited += min(now - met_at, _MOST_OF_A_TRY)
        self._waits[key] = (waited, now)
        return waited < self.longest_seconds


DISK_WAITS: Final = DiskWaits()


def failure(
    error: SeptetError,
    result: StepResult | None = None,
    *,
    most_tries: int | None = None,
    notifies_on: str = "",
    issue_title: str = "",
) -> ApplicationError:
    """Return an error as Temporal's failure, which says whether a retry can help and after which delay.

    Temporal's list of non-retryable types is not used, because it matches only exact class names.
    """
    if will_retry(error, most_tries):
        attempt = activity.info().attempt
        # Waits are logged more and more rarely: at the attempts 1, 2, 4, 8 and so on.
        if attempt & (attempt - 1) == 0 and not isinstance(error, (SupersededError, HostFullError)):
            _log.info("tried_again", why=preview(error.message), seconds=_delay(error).total_seconds())
    return ApplicationError(
        mask(error.message)[:4000],
        FailureFacts(remedy=error.remedy, result=result, notifies_on=notifies_on, issue_title=issue_title),
        type=type(error).__name__.removesuffix("Error"),
        non_retryable=not will_retry(error, most_tries),
        next_retry_delay=_delay(error) if error.retryable else None,
        category=ApplicationErrorCategory.BENIGN if error.retryable else ApplicationErrorCategory.UNSPECIFIED,
    )


def will_retry(error: SeptetError, most_tries: int | None = None) -> bool:
    """Return whether Temporal will retry the activity after this attempt failed.

    After most errors, `most_tries` limits the attempts. A busy machine always allows a retry. A full disk allows
    retries as long as `DiskWaits` does.
    """
    if isinstance(error, MachineBusyError):
        return True
    if isinstance(error, DiskFullError):
        return DISK_WAITS.may_last()
    attempt, bounds = activity.info().attempt, (error.most_tries, most_tries)
    return error.retryable and all(bound is None or attempt < bound for bound in bounds)


@contextmanager
def translating_failures(
    root: Path,
    *,
    most_tries: int | None = None,
    notifies_on: str = "",
    issue: Mapping[str, JsonValue] | None = None,
) -> Iterator[None]:
    """Translate errors in the block into Temporal's failures, which name cause, place and remedy.

    Args:
        most_tries: The number of attempts after which an error is final. An attempt that died with its worker is
            never the last attempt.
        notifies_on: The queue on which this host notifies people of a work order without a workspace.
        issue: The issue for which a workspace is opened; empty until it was read.
    """
    try:
        yield
    except (SeptetError, OSError) as error:
        title = cut(str((issue or {}).get("title", "")), 300)
        raise failure(
            diagnosed(error, root), most_tries=most_tries, notifies_on=notifies_on, issue_title=title
        ) from error


def _delay(error: SeptetError) -> timedelta:
    if error.retry_after_seconds is not None:
        return timedelta(seconds=error.retry_after_seconds)
    return min(timedelta(seconds=2.0 ** min(activity.info().attempt, 10)), timedelta(seconds=60))
