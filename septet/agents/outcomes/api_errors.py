"""Classify an error of a model API: its kind, whether a retry may help, and the remedy.

The tables contain the sentences in which agent CLIs and model APIs report errors; the first matching row counts.
The sources are the CLIs' programs, the APIs that they use, and users' reports.
"""

import re
from dataclasses import dataclass
from typing import Final

from septet.agents.outcomes.reset_times import names_reset


@dataclass(frozen=True, slots=True)
class ApiError:
    """A kind of error of a model API, with the remedy and the wait before a retry."""

    kind: str
    retryable: bool = False
    remedy: str = ""
    retry_after_seconds: float | None = None
    """The shortest wait before a retry, in seconds, if the message names no time."""


_ANOTHER_MODEL: Final = (
    "Start a new work order with a model that the account has: `--model MODEL`, or `--step STEP.model=MODEL` "
    "where the repository names one for the step."
)
_AUTHENTICATION: Final = ApiError(
    "authentication",
    remedy=(
        "Where the worker (`septet up`) runs, log in with the agent's CLI, or set its API key and start the "
        "worker again; then run `septet retry`."
    ),
)
_BILLING: Final = ApiError(
    "billing",
    remedy=(
        "Add credit to the account or raise its limit (an administrator may have to), then run `septet retry`; or "
        "start a new work order with another `--agent`."
    ),
)
_NO_QUOTA: Final = ApiError("billing", remedy=f"The account's plan does not include this model. {_ANOTHER_MODEL}")
_PERMISSION: Final = ApiError(
    "permission", remedy=f"Give the account access, then run `septet retry`. Or: {_ANOTHER_MODEL}"
)
_MODEL: Final = ApiError("unknown_model", remedy=_ANOTHER_MODEL)
_CONTEXT: Final = ApiError(
    "context_length", remedy="Split the work into smaller issues, or choose a larger model."
)
REFUSAL: Final = ApiError(
    "refusal",
    remedy=(
        "Reword the issue and start a new work order; or start one with another model (`--model`), or with an "
        "agent that takes over where this one refuses (`--fallback-agent`)."
    ),
)
_REQUEST: Final = ApiError("invalid_request", remedy="Read the run's stdout.jsonl for what was refused.")
_RATE_LIMIT: Final = ApiError("rate_limit", retryable=True, retry_after_seconds=60.0)
_OVERLOADED: Final = ApiError("overloaded", retryable=True, retry_after_seconds=30.0)
_SERVER: Final = ApiError("server_error", retryable=True, retry_after_seconds=15.0)
_NETWORK: Final = ApiError("network", retryable=True, retry_after_seconds=10.0)
_UNKNOWN: Final = ApiError("unknown", retryable=True, retry_after_seconds=30.0)

_BY_KIND: Final = {
    error.kind: error
    for error in (
        _AUTHENTICATION, _BILLING, _PERMISSION, _MODEL, _CONTEXT, REFUSAL, _REQUEST, _RATE_LIMIT, _OVERLOADED,
        _SERVER, _NETWORK, _UNKNOWN,
    )
} | {"no_quota": _NO_QUOTA}  # fmt: skip
_BY_STATUS: Final = {
    401: _AUTHENTICATION,
    402: _BILLING,
    403: _PERMISSION,
    404: _MODEL,
    408: _NETWORK,
    413: _CONTEXT,
    429: _RATE_LIMIT,
    529: _OVERLOADED,
}
_SERVER_ERRORS: Final = range(500, 600)
_CLIENT_ERRORS: Final = range(400, 500)


_Row = tuple[str, re.Pattern[str]]
"""A kind of error, and the pattern of its words."""


def _row(kind: str, *phrases: str) -> _Row:
    return kind, re.compile("|".join(phrases), re.IGNORECASE)


_SURE: Final = (
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
"""The words that take precedence over a status: 400 may mean a long context, an empty account or a refusal."""

_LIKELY: Final = (
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
"""The words that count if the status is unknown."""

_STATUS: Final = re.compile(
    r"^API Error:.{0,40}?\b([45]\d\d)\b|(?:unexpected status|last status:) (\d{3})|\"code\":\s*(\d{3})"
)
"""The pattern of a status in a message of claude, codex or Google."""


def classify(status: int | None, words: str, *, kind: str = "unknown") -> ApiError:
    """Return the kind of an API error; a billing error that names the time of its end counts as a rate limit.

    A status in `words` takes precedence over `status`. If neither status nor words show a kind, the CLI's own word
    `kind` counts.
    """
    match = _STATUS.search(words)
    named = int(next(filter(None, match.groups()))) if match else None
    error = _by_words_or_status(named or status, words) or _BY_KIND[kind]
    return _RATE_LIMIT if error is _BILLING and names_reset(words) else error


def _by_words_or_status(status: int | None, words: str) -> ApiError | None:
    for kind, pattern in _SURE:
        if pattern.search(words):
            return _BY_KIND[kind]
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status in _SERVER_ERRORS:
        return _SERVER
    if status in _CLIENT_ERRORS:
        return _REQUEST
    return next((_BY_KIND[kind] for kind, pattern in _LIKELY if pattern.search(words)), None)
