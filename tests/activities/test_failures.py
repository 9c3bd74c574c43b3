"""The log events of an attempt that is tried again."""

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.host.failures import OPENING_TRIES, DiskWaits, failure, translating_failures
from septet.errors import AgentApiUnavailableError, GitUnavailableError, MachineBusyError, SeptetError


def logged(error: SeptetError, attempt: int) -> list[object]:
    """Return the reasons for waiting in the log events of one failed attempt."""
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=attempt)
    with capture_logs() as events:
        environment.run(failure, error)
    return [event["why"] for event in events if event["event"] == "tried_again"]


def test_a_step_that_waits_says_why_ever_more_rarely() -> None:
    """Of 15 attempts at an overloaded API, the log has attempts 1, 2, 4 and 8, with the API's words."""
    waits = [attempt for attempt in range(1, 16) if logged(AgentApiUnavailableError("It is overloaded."), attempt)]
    assert waits == [1, 2, 4, 8]
    assert logged(AgentApiUnavailableError("It is overloaded."), 1) == ["It is overloaded."]


@pytest.mark.parametrize(
    ("error", "attempt", "for_good"),
    [(GitUnavailableError, 7, False), (GitUnavailableError, 8, True), (MachineBusyError, 500, False)],
)
def test_an_origin_that_is_not_reached_is_told_after_eight_tries(
    tmp_path: Path, error: type[SeptetError], attempt: int, for_good: bool
) -> None:
    """The activity itself ends the tries, and waits for a file or a process as long as for a slot."""
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=attempt)

    def open_it() -> None:
        with translating_failures(tmp_path, most_tries=OPENING_TRIES):
            raise error("a reason")

    with pytest.raises(ApplicationError) as failed:
        environment.run(open_it)
    assert failed.value.non_retryable is for_good


@pytest.mark.parametrize(("seconds_of_a_try", "most_tries"), [(60, 61), (600, 13), (3600, 13)])
def test_the_wait_for_a_full_disk_ends(seconds_of_a_try: int, most_tries: int) -> None:
    """Each activity waits one hour for a full disk, however long a try takes."""
    ticks = count(0, seconds_of_a_try)
    environment, waits = ActivityEnvironment(), DiskWaits(clock=lambda: float(next(ticks)))
    other = ActivityEnvironment()
    other.info = replace(other.info, activity_id="other")
    tries = 1
    while environment.run(waits.may_last):
        tries += 1
    assert tries == most_tries
    assert other.run(waits.may_last)
