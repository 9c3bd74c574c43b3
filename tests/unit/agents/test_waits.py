"""How long a turn waits after a temporary failure."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fakes.agent_streams import lines, outcome_of

from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.api_errors import classify
from septet.agents.outcomes.endings import api_ending, with_ending
from septet.agents.outcomes.outcome import ExitRecord, Outcome
from septet.agents.runs.folders import Run
from septet.agents.runs.records import StartReason
from septet.agents.turns.end_of_turn import failure_of
from septet.agents.turns.follow import StreamReading

ENDED = datetime(2026, 3, 9, 8, 0, tzinfo=UTC)
HOUR = 3600.0
END = ExitRecord(cause="exited", ended_at="2026-03-09T08:00:00.000Z")


def limited(status: int | None, words: str, resets_in: float | None) -> Outcome:
    moment = None if resets_in is None else ENDED.timestamp() + resets_in
    return with_ending(Outcome(ended="ok"), api_ending(classify(status, words), words, resets_at=moment), END)


@pytest.mark.parametrize(
    ("resets_in", "waited", "seconds"),
    [(300.0, 3, 305.0), (3600.0, 0, 3605.0), (-60.0, 3, 40.0), (None, 0, 60.0), (None, 2, 240.0)],
)
def test_a_time_that_a_cli_names_is_waited_for_and_no_longer(
    resets_in: float | None, waited: int, seconds: float
) -> None:
    """The wait ends at the named time; without a named time it doubles, for up to a quarter of an hour."""
    starts: list[StartReason] = ["waited"] * waited
    failure = failure_of(limited(429, "rate limit", resets_in), Run(Path("/"), None), ["first", *starts])
    assert failure.retry_after_seconds == seconds


def test_a_busy_model_is_not_waited_for_until_a_usage_limit_ends() -> None:
    """The end of an earlier usage limit does not lengthen the wait for a busy model."""
    outcome = limited(529, "Overloaded", 14_400.0)
    assert (outcome.retry_after_seconds, outcome.retry_is_named) == (30.0, False)


@pytest.mark.parametrize(
    ("later", "seconds"),
    [
        ([("allowed", "seven_day", None)], 60.0),
        ([("allowed", "five_hour", None)], 7205.0),
        ([("rejected", "five_hour", 600)], 7205.0),
        ([("allowed", "seven_day", None), ("rejected", "five_hour", 600)], 605.0),
    ],
)
def test_a_limit_of_claude_that_is_over_is_not_that_of_a_later_error(
    later: list[tuple[str, str, int | None]], seconds: float
) -> None:
    """Events report each kind of limit on its own; the wait lasts until the last reached limit ends."""
    events = []
    for status, kind, resets_in in [("rejected", "seven_day", 7200), *later]:
        moment = None if resets_in is None else int(ENDED.timestamp()) + resets_in
        about = {"status": status, "rateLimitType": kind, "resetsAt": moment}
        events.append({"type": "rate_limit_event", "rate_limit_info": about})
    failed = {"type": "result", "subtype": "success", "is_error": True, "api_error_status": 429, "result": "slow"}
    assert outcome_of("claude", *events, failed, end=END).retry_after_seconds == seconds


def test_a_limit_of_a_run_that_nobody_saw_end_counts_from_its_last_word(tmp_path: Path) -> None:
    """Without a record of the run's end, the wait counts from the last change of its output."""
    stdout, words = Run(tmp_path, None).stdout, f"usage limit reached|{int(ENDED.timestamp()) + 60}"
    stdout.write_bytes(lines([{"type": "result", "is_error": True, "api_error_status": 429, "result": words}]))
    os.utime(stdout, (ENDED.timestamp(), ENDED.timestamp()))
    reading = StreamReading(Run(tmp_path, None), adapter_for("claude").dialect(), 1)
    outcome = reading.outcome(ExitRecord(cause="lost"))
    assert (outcome.ended_at_seconds, outcome.retry_after_seconds) == (ENDED.timestamp(), 65.0)
