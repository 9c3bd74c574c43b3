"""What an error of a model API means: its kind, whether waiting helps, and the remedy."""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ApiError:
    """An error of the model API, understood."""

    kind: str
    retryable: bool
    remedy: str = ""
    retry_after_seconds: float | None = None
    """How long to wait at least, where waiting helps and nobody has named a time."""


_AUTHENTICATION: Final = ApiError(
    "authentication",
    retryable=False,
    remedy="Log in with the agent's CLI, or set its API key, then run `septet retry`.",
)
_BILLING: Final = ApiError(
    "billing", retryable=False, remedy="Add credit to the account, then run `septet retry`."
)
_PERMISSION: Final = ApiError(
    "permission",
    retryable=False,
    remedy="Give the account access, then run `septet retry`; or start again with another `--model`.",
)
_MODEL: Final = ApiError(
    "unknown_model", retryable=False, remedy="Name a model that the account has (`--model`), then start again."
)
_CONTEXT: Final = ApiError(
    "context_length", retryable=False, remedy="Split the work into smaller issues, or choose a larger model."
)
_REQUEST: Final = ApiError(
    "invalid_request", retryable=False, remedy="Read the run's stdout.jsonl for what was refused."
)
_RATE_LIMIT: Final = ApiError("rate_limit", retryable=True, retry_after_seconds=60.0)
_OVERLOADED: Final = ApiError("overloaded", retryable=True, retry_after_seconds=30.0)
_SERVER: Final = ApiError("server_error", retryable=True, retry_after_seconds=15.0)
_NETWORK: Final = ApiError("network", retryable=True, retry_after_seconds=10.0)
_UNKNOWN: Final = ApiError("unknown", retryable=True, retry_after_seconds=30.0)

_BY_WORDS: Final = tuple(
    (re.compile(words, re.IGNORECASE), error)
    for words, error in (
        (
            r"(prompt|input) (is|as) too long|context (length|window|size)|maximum (context|prompt length)",
            _CONTEXT,
        ),
        (r"prompt token count|model token limit", _CONTEXT),
        (r"usage limits\b.{0,20}regain access|quota exceeded for (quota )?metric|you have no quota", _RATE_LIMIT),
        (r"credit balance|billing|payment required|not included with the plan|plan, upgrade", _BILLING),
        (r"not logged in|please run /login|(invalid|incorrect) api key|invalid bearer", _AUTHENTICATION),
        (r"missing environment variable|token (has expired|could not be refreshed)", _AUTHENTICATION),
        (r"organization has been disabled", _PERMISSION),
        (r"issue with the selected model", _MODEL),
        (r"usage limit|rate limit|quota|limit (will reset|reached)|hit your (\w+ )?limit", _RATE_LIMIT),
        (r"overloaded|high demand", _OVERLOADED),
        (r"ECONN|ENOTFOUND|ETIMEDOUT|timed? ?out|unable to connect|connection|disconnected|network", _NETWORK),
    )
)
_FIRST_WORDS: Final = _BY_WORDS[:4]
"""Words that say more than a status does: 400 is sent for a long context, and for an account that is empty or has
reached its limit too. Google's quotas name billing, and begin anew."""
_BY_STATUS: Final = {
    400: _REQUEST,
    401: _AUTHENTICATION,
    402: _BILLING,
    403: _PERMISSION,
    404: _MODEL,
    408: _NETWORK,
    413: _CONTEXT,
    429: _RATE_LIMIT,
    529: _OVERLOADED,
}
_STATUS_IN_WORDS: Final = re.compile(r"^API Error:.{0,40}?\b([45]\d\d)\b")
_SERVER_ERRORS: Final = range(500, 600)
_CLIENT_ERRORS: Final = range(400, 500)


def classify(status: int | None, words: str) -> ApiError:
    """Return what an error means.

    Args:
        status: The HTTP status, where the CLI says it; else it is looked for in the words.
        words: The CLI's message.
    """
    status = status or _status_in(words)
    for pattern, error in _FIRST_WORDS:
        if pattern.search(words):
            return error
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status in _SERVER_ERRORS:
        return _SERVER
    if status in _CLIENT_ERRORS:
        return _REQUEST
    return next((error for pattern, error in _BY_WORDS if pattern.search(words)), _UNKNOWN)


def _status_in(words: str) -> int | None:
    match = _STATUS_IN_WORDS.search(words)
    return int(match[1]) if match else None
