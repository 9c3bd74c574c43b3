"""The meaning of the words of model APIs and CLIs, as people have reported them."""

from datetime import UTC, datetime, timedelta, tzinfo

import pytest

from septet.agents.outcomes.api_errors import classify
from septet.agents.outcomes.endings import api_ending, with_ending
from septet.agents.outcomes.outcome import ExitRecord, Outcome
from septet.system.timestamps import timestamp

SPENDING = "API Error: 400 You have reached your specified API usage limits. You will regain access on {} UTC."
HOUR = 3600.0
SAID = datetime(2026, 3, 9, 11, 30).astimezone()
"""A moment before noon, in the machine's zone."""
GOOGLES_QUOTA = (
    "[API Error: You exceeded your current quota, please check your plan and billing details. \n* Quota exceeded for"
    " metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 20]"
)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("prompt is too long: 215197 tokens > 200000 maximum", "context_length"),
        ("the request exceeds the available context size, try increasing it", "context_length"),
        ("ValidationException: Input is too long for requested model.", "context_length"),
        ("Your request exceeded model token limit: 262144 (requested: 300000)", "context_length"),
        ("invalid params, context window exceeds limit", "context_length"),
        ("5-hour limit reached ∙ resets 3pm", "rate_limit"),
        ("You've hit your weekly limit · resets Mon 9am", "rate_limit"),
        ("[API Error: You have exhausted your daily quota on this model.]", "rate_limit"),
        (GOOGLES_QUOTA, "rate_limit"),
        ("Quota exceeded. Check your plan and billing details.", "billing"),
        ("OAuth token has expired. Please obtain a new token.", "authentication"),
        ("Incorrect API key provided: sk-xxxx.", "authentication"),
        ("This organization has been disabled.", "permission"),
        ("There's an issue with the selected model (x-1). It may not exist.", "unknown_model"),
        ("Overloaded", "overloaded"),
        ("connect ETIMEDOUT 10.0.0.1:443", "network"),
        ("The teapot is short and stout.", "unknown"),
    ],
)
def test_words_tell_where_no_status_does(words: str, kind: str) -> None:
    """Without a status the message's words decide the kind of the error."""
    assert classify(None, words).kind == kind


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (429, "too many tokens per minute for this model", "rate_limit"),
        (401, "the account is out of quota", "authentication"),
        (400, SPENDING.format("2026-12-01 at 00:00"), "rate_limit"),
        (402, "402 You have no quota", "rate_limit"),
        (400, "prompt token count of 9 exceeds the limit of 8", "context_length"),
    ],
)
def test_a_status_says_more_than_most_words(status: int, words: str, kind: str) -> None:
    """Only words about a long context, a usage limit or an empty account win over the status."""
    assert classify(status, words).kind == kind


def waiting_for(words: str, said: datetime) -> Outcome:
    """Return the outcome of a run that ended at a moment with these words."""
    end = ExitRecord(cause="exited", ended_at=timestamp(said))
    return with_ending(Outcome(ended="ok"), api_ending(classify(None, words), words), end)


@pytest.mark.parametrize(
    ("form", "zone"),
    [
        (SPENDING.format("%Y-%m-%d at %H:%M"), UTC),
        ("Claude AI usage limit reached|{seconds}", UTC),
        ("Your usage limit is hit. Upgrade to Pro or try again at %b %dth, %Y %I:%M %p.", None),
        ("Your usage limit is hit. Upgrade to Pro or try again at %I:%M %p.", None),
    ],
    ids=["key", "subscription", "codex", "codex of the same day"],
)
def test_a_limit_is_waited_for_until_the_moment_that_is_named(form: str, zone: tzinfo | None) -> None:
    """Anthropic's keys, claude's subscriptions and codex name the time in their own forms."""
    moment = (SAID + timedelta(hours=1)).astimezone(zone)
    outcome = waiting_for(moment.strftime(form).format(seconds=int(moment.timestamp())), SAID)
    assert (outcome.kind, outcome.retry_after_seconds, outcome.retry_is_named) == ("rate_limit", HOUR + 5.0, True)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("5-hour limit reached ∙ resets 3pm (America/New_York)", 3 * HOUR - 5.0),
        ("You've hit your session limit · resets 4:45pm (UTC)", 45 * 60.0 - 5.0),
        ("You've hit your session limit · resets 12:50am (Asia/Tokyo)", 23 * HOUR + 50 * 60.0 - 5.0),
        ("You've hit your limit · resets 1am (Asia/Tokyo)", 0.0),
        ("You've hit your weekly limit · resets Mar 10, 10:59am (America/New_York)", 23 * HOUR - 65.0),
        ("Weekly limit reached · resets Mar 10 at 12pm (America/New_York) · /upgrade to Max", 24 * HOUR - 5.0),
        ("Claude usage limit reached. Your limit will reset at 1pm (Etc/GMT+5).", 2 * HOUR - 5.0),
        ("You've hit your usage limit. Upgrade to Pro or try again in 3 hours 20 minutes.", 200 * 60.0),
        ("You've hit your usage limit. Try again in 5 days 22 hours 11 minutes.", 142 * HOUR + 11 * 60.0),
        ("You've hit your usage limit. Try again in 1 minute.", 60.0),
    ],
)
def test_the_words_of_subscriptions_tell_when_their_limit_ends(words: str, seconds: float) -> None:
    """A named hour is the next such hour in its zone; an hour that has just passed ends the wait."""
    outcome = waiting_for(words, datetime(2026, 3, 9, 16, 0, 5, tzinfo=UTC))
    assert (outcome.kind, outcome.retry_after_seconds) == ("rate_limit", seconds + 5.0)


@pytest.mark.parametrize("zone", ["", " (Nowhere/At_All)", " (America)"])
def test_an_hour_without_a_zone_that_is_known_is_the_machines(zone: str) -> None:
    """An hour without a known zone is an hour of the machine's zone, in which claude runs."""
    assert waiting_for(f"5-hour limit reached ∙ resets 12:30pm{zone}", SAID).retry_after_seconds == HOUR + 5.0


@pytest.mark.parametrize(
    "words", ["resets 13pm (UTC)", "resets Feb 30 at 1pm", "resets soon", "try again in 7 moons"]
)
def test_words_that_tell_no_moment_are_waited_for_as_no_words(words: str) -> None:
    """Words without a valid time give the usual wait of a minute."""
    outcome = waiting_for(f"usage limit reached, {words}", SAID)
    assert (outcome.retry_after_seconds, outcome.retry_is_named) == (60.0, False)


def test_a_time_of_that_day_that_is_over_is_waited_for_no_longer() -> None:
    """Codex names only the hour if the limit ends on the same day, so a past hour ends the wait."""
    outcome = waiting_for("Your usage limit is hit, try again at 12:00 AM.", SAID)
    assert (outcome.retry_after_seconds, outcome.retry_is_named) == (5.0, False)


def test_a_moment_that_there_is_not_is_none() -> None:
    """An impossible date gives the usual wait of a minute."""
    outcome = waiting_for("usage limit: try again at Feb 30th, 2026 7:18 AM.", SAID)
    assert (outcome.retry_after_seconds, outcome.retry_is_named) == (60.0, False)
