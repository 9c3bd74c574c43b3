"""A table of the sentences in which agent CLIs and model APIs report an error, and the end of a limit.

The sources are the CLIs' programs, the APIs behind them, and users' reports. The first matching row counts.
"""

import re
from typing import Final

Row = tuple[str, re.Pattern[str]]
"""A kind of error, and the pattern of its words."""


def _row(kind: str, *phrases: str) -> Row:
    return kind, re.compile("|".join(phrases), re.IGNORECASE)


SURE: Final = (
    _row(
        "context_length",
        r"(prompt|input) (is|as) too long|context (length|window|size)|maximum (context|prompt length)",
        r"prompt token count|model token limit|exceeds the maximum number of tokens",
    ),
    _row(
        "refusal",
        r"violate our usage policy|safeguards (flagged|stopped)|can't help with this\. start a new",  # claude
        r"content filtering policy",  # Anthropic
        r"flagged (for possible|as potentially)|policy violation|limited access to this content",  # OpenAI
        r"rejected by the content policy|content[ _-]filter\b",  # codex, opencode
        r"filtered due to the prompt",  # Azure
        r"response was blocked due to|PROHIBITED_CONTENT",  # gemini
        r"blocked by content filtering|filtered by the responsible ai",  # copilot
    ),
    _row("no_quota", r"limit: 0(?![\d.])"),  # Google: the plan has none
    _row(
        "rate_limit",
        r"usage limits\b.{0,20}regain access",  # Anthropic's keys
        r"hit your usage limit",  # codex
        r"exhausted your (capacity|daily quota)|quota exceeded for (quota )?metric",  # Google
        r"you have no quota",  # copilot
    ),
    _row(
        "billing",
        r"credit balance|billing|payment required",
        r"\bout of .{0,20}(credits|usage)\b|(more|usage|available|any|paid) credits\b|credits exhausted",
        r"spend(ing)?[ _](limit|cap)",
        r"insufficient[ _](\w+[ _])?(credit|balance|quota|fund)",
        r"group budget|usage is paused|usage limit is set to \$0|usage allocation has been disabled",  # claude
        r"seat type doesn't include",
        r"not included with the plan|plan, upgrade",  # codex
        r"enable overages",  # Google
        r"additional usage limit|(?<!\d )premium request",  # copilot, whose summary counts them
    ),
    _row("authentication", r"API key not valid|API_KEY_INVALID"),
    _row("unknown_model", r"\bmodel\b.{0,120}\b(not supported|does not exist|not found)"),
    _row("overloaded", r"at capacity|no capacity available|capacity (is unavailable|exceeded)|MODEL_CAPACITY_EX"),
)
"""The words that count before a status: 400 may mean a long context, an empty account or a refusal."""

LIKELY: Final = (
    _row(
        "authentication",
        r"not logged in|please run /login|(invalid|incorrect) api key|invalid bearer",
        r"missing environment variable|token (has expired|could not be refreshed)",
    ),
    _row("permission", r"organization has been disabled|service is disabled for your org"),
    _row("unknown_model", r"issue with the selected model"),
    _row(
        "rate_limit",
        r"usage limit|rate.?limit|(?<!disk )quota|limit[ _](will reset|reached)|usage exceeded",
        r"(hit|reached) your [\w' -]{0,40}limit",
        r"too many (requests|tokens)|throttl|resource.(has been )?exhausted|exceeded your copilot token usage",
    ),
    _row("overloaded", r"overloaded|high demand"),
    _row("invalid_request", r"invalid_request_error|INVALID_ARGUMENT"),
    _row(
        "network",
        r"ECONN|ENOTFOUND|ETIMEDOUT|timed? ?out|unable to connect|connection|disconnected|network|fetch failed",
    ),
)
"""The words that count without a known status."""

STATUS: Final = re.compile(
    r"^API Error:.{0,40}?\b([45]\d\d)\b|(?:unexpected status|last status:) (\d{3})|\"code\":\s*(\d{3})"
)
"""A status in the words: claude's, codex's, Google's."""

_DAY: Final = r"(?P<month>[A-Z][a-z]{2})[a-z]* (?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,? (?P<year>\d{4}))?"
_CLOCK: Final = r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?(?P<half>[AaPp])[Mm]\b(?: \((?P<zone>[\w+/-]+)\))?"
_UNIT: Final = r"(?:ms|d(?:ays?)?|h(?:(?:ou)?rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])"
_LENGTH: Final = rf"(?P<length>(?:\d+(?:\.\d+)? ?{_UNIT}[ ,]*(?:and )?)+)"
_DATE: Final = r"(?P<date>\d{4}-\d\d-\d\d)(?: at |T| )(?P<time>\d\d:\d\d)(?::\d\d)?(?:\.\d+)?(?P<utc>Z| UTC)?"

MOMENTS: Final = (
    # claude with a plan, earlier: `usage limit reached|1764151200`; OpenAI's plans: `"resets_at":1788879437`
    re.compile(r"(?:\||resets_at\W{1,4})(?P<epoch>\d{10}(?:\d{3})?)\b"),
    # codex, in the machine's zone: `try again at 7:18 AM` of the same day, `try again at Nov 28th, 2026 7:18 AM`
    re.compile(rf"(?P<past>(?i:try again at)) (?:{_DAY}(?:,| at)? )?{_CLOCK}"),
    # claude: `resets Jul 11 at 12pm (Asia/Tokyo)`; copilot: `reset on April 20, 2026 at 2:00 AM`
    re.compile(rf"\b(?i:resets?)(?: at| on)? (?:{_DAY}(?:,| at)? )?{_CLOCK}"),
    # copilot: `Allowance resets June 14, 2026`, `wait until April 21, 2026`
    re.compile(rf"\b(?i:resets?|renews?|wait until)(?: on)? {_DAY}\b"),
    # Anthropic's keys: `regain access on 2026-12-01 at 00:00 UTC`; others: `reset at 2026-11-29 17:37:43`
    re.compile(rf"\b(?i:resets?|regain access|try again)(?: at| on)? {_DATE}"),
    # gemini: `reset after 3h5m12s`, `retry in 34.07s`; codex, copilot, opencode: `try again in 2 days 3 hours`
    re.compile(
        rf"\b(?:(?:try|retry)(?: again)? (?:in|after)|resets? (?:in|after)|wait(?: for)?) {_LENGTH}", re.IGNORECASE
    ),
    # Google's daily quotas name no time: they begin anew at midnight in California
    re.compile(r"(?P<daily>exhausted your daily quota|requests_per_model_per_day|RequestsPerDay)"),
)
"""The patterns of the end of a limit."""
