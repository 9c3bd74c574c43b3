"""The error messages of CLIs and model APIs: what each message means, and how long the engine waits after it.

Sources: the strings of claude 2.1.329, codex 0.169.0, gemini 0.61.0, copilot 1.0.102 and opencode 1.18.33; openai/codex
`codex-rs/protocol/src/error.rs`; google-gemini/gemini-cli `googleQuotaErrors.ts` and `constants.ts`; and issues of
anthropics/claude-code, github/copilot-cli and google-gemini/gemini-cli, by number.
"""

from datetime import UTC, datetime
from typing import Final

import pytest

from septet.agents.outcomes.api_errors import classify
from septet.agents.outcomes.endings import api_ending, with_ending
from septet.agents.outcomes.outcome import ExitRecord, Outcome
from septet.system.text import timestamp

SAID: Final = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
HOUR: Final = 3600.0
DAY: Final = 24 * HOUR


def here(*moment: int) -> float:
    return datetime(*moment).astimezone().timestamp() - SAID.timestamp()  # type: ignore[arg-type]


LIMITS: Final[tuple[tuple[str, str, float | None], ...]] = (
    # source, sentence, seconds of the wait; `None` if the sentence names no time
    ("claude 1.0.69, issue 9046", f"Claude AI usage limit reached|{int(SAID.timestamp()) + 600}", 600.0),
    ("claude", "You've hit your session limit · resets 3pm (Europe/Berlin)", 2 * HOUR),
    ("claude", "You've hit your Sonnet limit · resets Dec 1 at 12am (UTC)", 2.5 * DAY),
    ("claude", "You've hit your weekly limit · resets Dec 1, 2026 at 12am (UTC)", 2.5 * DAY),
    ("claude", "You're out of usage credits · resets 1:30pm (UTC)", 1.5 * HOUR),
    ("claude", "You've hit your org's monthly usage limit · resets Dec 1, 12am (UTC)", 2.5 * DAY),
    ("claude, a plan's team", "You've hit your team's pooled group budget. It resets Dec 1 at 12am (UTC).", 2.5 * DAY),
    ("codex", "You've hit your usage limit, or try again at Nov 29th 3:05 PM.", here(2026, 11, 29, 15, 5)),
    ("codex", "You've hit your usage limit. Visit … or try again at Dec 1st, 2026 7:00 AM.", here(2026, 12, 1, 7, 0)),
    ("codex", "You've hit your usage limit for GPT-6. Switch to another model now, or try again later.", None),
    ("codex, earlier", "You've hit your usage limit. Try again in 3 days 2 hours.", 3 * DAY + 2 * HOUR),
    ("opencode, pi issue 4172", f'{{"error":{{"type":"usage_limit_reached","resets_at":{int(SAID.timestamp()) + 9568}}}}}', 9568.0),
    ("opencode, anomalyco/opencode issue 50079", "Free usage exceeded, subscribe to Go https://opencode.ai/go", None),
    (
        "copilot, microsoft/github-copilot-appmod issue 139",
        "You've reached your monthly credit limit. Wait until your credits reset on December 1, 2026 at 5:30 AM.",
        here(2026, 12, 1, 5, 30),
    ),
    (
        "copilot, microsoft/vscode-copilot-release issue 6806",
        "You've reached your monthly chat messages limit. Upgrade or wait until December 1, 2026 for it to reset.",
        here(2026, 12, 1),
    ),
    ("gemini", "You have exhausted your capacity on this model. Your quota will reset after 3h5m12s.", 11112.0),
    ("gemini, issue 22107", "You have exhausted your capacity on this model. Your quota will reset after 0s..", 0.0),
    ("gemini", "You have exhausted your daily quota on this model.", 20 * HOUR),  # midnight in California
    ("gemini", "RESOURCE_EXHAUSTED: rate limit\nSuggested retry after 34.5s.", 34.5),
    ("gemini, Antigravity's", "Individual quota reached. Please enable overages. Resets in 3h5m12s.", 11112.0),
    ("gemini, Google's API", "Quota exceeded for metric: x_free_tier_requests, limit: 20\nPlease retry in 900ms", 0.9),
    ("copilot, issue 2144", "Sorry, you've hit a rate limit that restricts … Please try again in 2 hours.", 2 * HOUR),
    ("copilot, issue 2754", "you've hit a rate limit … Please try again in 15 hours 23 minutes.", 15 * HOUR + 1380.0),
    ("copilot, issue 2740", "Sorry, you have been rate-limited. Please wait 2 minutes before trying again", 120.0),
    (
        "copilot, issue 2828",
        "You've reached your weekly rate limit. Please wait for your limit to reset on November 29, 2026 at 2:00 AM",
        here(2026, 11, 29, 2, 0),
    ),
    ("opencode, its Zen", "Subscription quota exceeded. Retry in 3hr 5min.", 3 * HOUR + 300.0),
    ("opencode, z.ai", "Usage limit reached for 5 hour. Your limit will reset at 2026-11-28 15:00:00", here(2026, 11, 28, 15, 0)),
    ("opencode, Groq", "Rate limit reached for model x. Please try again in 7m12.5s.", 432.5),
    ("Anthropic's API", "API Error: 400 You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.", 2.5 * DAY),
    ("gemini", "[API Error: You exceeded your current quota, please check your plan and billing details. \n* Quota exceeded for metric: x_free_tier_requests, limit: 20]", None),
    ("opencode, Bedrock", "ThrottlingException: Too many tokens per day, please wait before trying again.", None),
)  # fmt: skip

MONEY: Final = (
    ("claude", "Credit balance is too low"),
    ("claude", "You've hit your monthly spend limit · raise it at https://claude.ai/settings/usage"),
    ("claude", "You're out of usage credits. Switch to another model to continue."),
    ("claude", "Your seat type doesn't include usage credits"),
    ("claude", "Your usage allocation has been disabled by your admin"),
    ("claude", "Your group's usage limit is set to $0"),
    ("claude", "Usage is paused for your organization. For help, please contact support."),
    ("claude", "Fable 5 requires usage credits."),
    ("codex", "Your workspace is out of credits. Add credits to continue."),
    ("codex", "You hit your spend cap set in your workspace. Increase your spend cap to continue."),
    ("gemini, issue 27761", "(429): Individual quota reached. Contact your administrator to enable overages"),
    ("codex", "Quota exceeded. Check your plan and billing details."),
    ("codex", "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus."),
    ("codex", "Usage not included with the plan"),
    ("gemini, a plan without that model", "Quota exceeded for metric: x, limit: 0, model: y\nPlease retry in 59s."),
    ("gemini", "INSUFFICIENT_G1_CREDITS_BALANCE: Insufficient credits balance"),
    ("copilot", "You've run out of your included AI credits for the month."),
    ("copilot", "You've reached your additional usage limit for your plan."),
    ("copilot, earlier", "You have exceeded your premium request allowance."),
    ("opencode, its Zen", "Insufficient balance. Manage your billing here: https://opencode.ai/workspace/x/billing"),
    ("opencode, its Zen", "Your workspace has reached its monthly spending limit of $20."),
    ("opencode, xAI", "Your team has either used all available credits or reached its monthly spending limit."),
    ("opencode, OpenAI", "insufficient_quota: You exceeded your current quota"),
)  # fmt: skip

REFUSALS: Final = (
    ("claude", "API Error: Opus 5.5's safeguards flagged this message (https://www.anthropic.com/legal/aup)."),
    ("claude, earlier", "Claude Code is unable to respond to this request, which appears to violate our Usage Policy"),
    ("claude, Anthropic's API", "API Error: 400 Output blocked by content filtering policy"),
    ("codex", "This request has been flagged for possible cybersecurity risk."),
    ("codex", "The input was rejected by the content policy."),
    ("codex", "This request was blocked due to a misalignment policy violation."),
    ("codex", "Invalid prompt: we've limited access to this content for safety reasons."),
    ("codex", "stream disconnected before completion: Incomplete response returned, reason: content_filter"),
    ("codex, OpenAI", "Invalid prompt: your prompt was flagged as potentially violating our usage policy."),
    ("gemini", "The model response was blocked due to safety settings."),
    ("gemini, Google's API", "The prompt was blocked: PROHIBITED_CONTENT"),
    ("copilot", "The model returned no content because the response was blocked by content filtering."),
    ("copilot", "Sorry, the response was filtered by the Responsible AI Service. Please rephrase your prompt"),
    ("opencode", "The response was blocked by the provider's content filter"),
    ("opencode, Azure", "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."),
)  # fmt: skip


OTHERS: Final = (
    (None, "prompt is too long: 215197 tokens > 200000 maximum", "context_length"),
    (None, "the request exceeds the available context size, try increasing it", "context_length"),
    (None, "ValidationException: Input is too long for requested model.", "context_length"),
    (None, "The input token count (9) exceeds the maximum number of tokens", "context_length"),
    (None, "Your request exceeded model token limit: 262144 (requested: 300000)", "context_length"),
    (None, "invalid params, context window exceeds limit", "context_length"),
    (None, "Codex ran out of room in the model's context window. Start a new thread.", "context_length"),
    (None, "The model rejected the prompt as too long.", "context_length"),
    (
        400,
        "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
        "context_length",
    ),
    (400, "prompt token count of 9 exceeds the limit of 8", "context_length"),
    (None, "OAuth token has expired. Please obtain a new token.", "authentication"),
    (None, "Incorrect API key provided: sk-xxxx.", "authentication"),
    (None, "API key not valid. Please pass a valid API key.", "authentication"),
    (None, "Missing environment variable: `OPENAI_API_KEY`.", "authentication"),
    (None, "Your access token could not be refreshed because your refresh token was revoked.", "authentication"),
    (401, "the account is out of quota", "authentication"),
    (None, "This organization has been disabled.", "permission"),
    (None, "There's an issue with the selected model (x-1). It may not exist.", "unknown_model"),
    (None, "The 'x-1' model is not supported when using Codex with a ChatGPT account.", "unknown_model"),
    (None, '[API Error: {"error":{"code":404,"message":"models/nope is not found"}}]', "unknown_model"),
    (None, "Overloaded", "overloaded"),
    (None, "We're currently experiencing high demand, which may cause temporary errors.", "overloaded"),
    (None, "unexpected status 503 Service Unavailable: try later", "server_error"),
    (None, "stream disconnected before completion: idle timeout waiting for SSE", "network"),
    (None, "exception TypeError: fetch failed sending request", "network"),
    (429, "too many tokens per minute for this model", "rate_limit"),
    (402, "402 You have no quota", "rate_limit"),
    (400, "specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.", "rate_limit"),
    (None, "Total usage est:       1 Premium request", "unknown"),  # copilot prints its usage after each run
    (None, " gpt-5  9 in, 1 out (Est. 0.33 Premium requests)", "unknown"),
)


def ended(words: str, status: int | None = None, said: datetime = SAID) -> Outcome:
    end = ExitRecord(cause="exited", ended_at=timestamp(said))
    return with_ending(Outcome(ended="ok"), api_ending(classify(status, words), words), end)


@pytest.mark.parametrize(("status", "words", "kind"), OTHERS)
def test_words_and_status_tell_the_kind_of_an_error(status: int | None, words: str, kind: str) -> None:
    """Only words about a long context, a usage limit or an empty account win over the status."""
    assert ended(words, status).kind == kind


@pytest.mark.parametrize(
    ("words", "seconds"), [row[1:] for row in LIMITS], ids=[" ".join(row[:2]) for row in LIMITS]
)
def test_a_limit_is_waited_for_until_it_ends(words: str, seconds: float | None) -> None:
    """The wait ends at the named time; without a named time it is a minute at first."""
    outcome = ended(words)
    assert (outcome.kind, outcome.retryable) == ("rate_limit", True)
    if seconds is not None:
        assert outcome.retry_after_seconds == pytest.approx(seconds + 5.0)
    else:
        assert (outcome.retry_after_seconds, outcome.retry_is_named) == (60.0, False)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("You've hit your session limit · resets 12:50am (Asia/Tokyo)", 23 * HOUR + 50 * 60.0 - 5.0),
        ("You've hit your limit · resets 1am (Asia/Tokyo)", 0.0),
        ("You've hit your weekly limit · resets Mar 10, 10:59am (America/New_York)", 23 * HOUR - 65.0),
        ("Claude usage limit reached. Your limit will reset at 1pm (Etc/GMT+5).", 2 * HOUR - 5.0),
    ],
)
def test_an_hour_is_the_next_such_hour_in_its_zone(words: str, seconds: float) -> None:
    """A named hour is the next such hour in its zone; an hour that has just passed ends the wait."""
    said = datetime(2026, 3, 9, 16, 0, 5, tzinfo=UTC)
    assert ended(words, said=said).retry_after_seconds == seconds + 5.0


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("5-hour limit reached ∙ resets 12:30pm", HOUR),
        ("5-hour limit reached ∙ resets 12:30pm (Nowhere/At_All)", HOUR),
        ("Your usage limit is hit. Upgrade to Pro or try again at 12:30 PM.", HOUR),
        ("Your usage limit is hit, try again at 12:00 AM.", 0.0),
    ],
)
def test_an_hour_without_a_zone_that_is_known_is_the_machines(words: str, seconds: float) -> None:
    """An hour without a known zone is of the machine's zone; codex names an hour of the same day, also a past one."""
    said = datetime(2026, 3, 9, 11, 30).astimezone()
    assert ended(words, said=said).retry_after_seconds == seconds + 5.0


@pytest.mark.parametrize(
    "time",
    [
        "resets 13pm (UTC)", "resets Feb 30 at 1pm", "resets soon", "try again in 7 moons",
        "try again at Feb 30th, 2026 7:18 AM.", "resets Jan 2, 2027 at 12am (UTC)",
    ],
)  # fmt: skip
def test_words_that_tell_no_moment_are_waited_for_as_no_words(time: str) -> None:
    """An impossible time, and a time more than a month away, give the usual wait of a minute."""
    outcome = ended(f"You've hit your usage limit · {time}")
    assert (outcome.retry_after_seconds, outcome.retry_is_named) == (60.0, False)


@pytest.mark.parametrize("status", [None, 403, 429])
@pytest.mark.parametrize("words", [words for _, words in MONEY], ids=[" ".join(row) for row in MONEY])
def test_an_account_without_money_is_told_at_once(words: str, status: int | None) -> None:
    """An unpaid account ends the turn at once, whatever the status, with a remedy."""
    outcome = ended(words, status)
    assert (outcome.kind, outcome.retryable) == ("billing", False)
    assert outcome.remedy


@pytest.mark.parametrize("status", [None, 400])
@pytest.mark.parametrize("words", [words for _, words in REFUSALS], ids=[" ".join(row) for row in REFUSALS])
def test_a_refusal_of_the_model_is_told_as_one(words: str, status: int | None) -> None:
    """The message says that the model refused, and the remedy names what may help."""
    outcome = ended(words, status)
    assert (outcome.kind, outcome.retryable) == ("refusal", False)
    assert outcome.message.startswith("The model refused this work.")
    assert all(word in outcome.remedy for word in ("Reword", "--model", "--fallback-agent"))


@pytest.mark.parametrize(
    ("words", "seconds"),
    [("The teapot is short and stout.", 30.0), ("The teapot is empty. Try again in 5 minutes.", 305.0)],
)
def test_an_unknown_sentence_is_one_of_the_errors_that_are_counted(words: str, seconds: float) -> None:
    """The wait follows the words, or is half a minute at first; `unknown_errors` gives up after three tries."""
    outcome = ended(words)
    assert (outcome.kind, outcome.retry_after_seconds) == ("unknown", seconds)
