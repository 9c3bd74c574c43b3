"""How long a turn waits after a failure that passes."""

import time
from pathlib import Path

import pytest

from septet.agents.clis.api_errors import classify
from septet.agents.clis.endings import api_ending, with_ending
from septet.agents.clis.outcome import ExitRecord, Outcome
from septet.agents.runs.folders import Run, StartReason
from septet.agents.turns.failures import failure_of


@pytest.mark.parametrize(
    ("resets_in", "waited", "seconds"),
    [(300.0, 3, 305.0), (3600.0, 0, 3605.0), (-60.0, 3, 40.0), (None, 0, 60.0), (None, 2, 240.0)],
)
def test_a_time_that_a_cli_names_is_waited_for_and_no_longer(
    resets_in: float | None, waited: int, seconds: float
) -> None:
    """Only where it names none is each wait twice as long as the one before, for up to a quarter of an hour."""
    moment = None if resets_in is None else time.time() + resets_in
    error = classify(429, "rate limit", resets_at=moment)
    outcome = with_ending(Outcome(ended="ok"), api_ending(error, "rate limit"), ExitRecord(cause="exited"))
    starts: list[StartReason] = ["waited"] * waited
    failure = failure_of(outcome, Run(Path("/"), None), ["first", *starts])
    assert failure.retry_after_seconds == pytest.approx(seconds, abs=2.0)


@pytest.mark.parametrize(
    ("status", "words", "seconds"), [(529, "Overloaded", 30.0), (500, "Internal server error", 15.0)]
)
def test_a_busy_model_is_not_waited_for_until_a_usage_limit_ends(status: int, words: str, seconds: float) -> None:
    """Claude names the end of a limit that it met earlier in the run, and went on; another error is none of it."""
    error = classify(status, words, resets_at=time.time() + 14_400.0)
    assert (error.retry_after_seconds, error.retry_is_named) == (seconds, False)
