"""Classify an error of a model API: its kind, whether a wait helps, and the remedy."""

from dataclasses import dataclass
from typing import Final

from septet.agents.outcomes.api_words import LIKELY, STATUS, SURE
from septet.agents.outcomes.reset_times import names_reset


@dataclass(frozen=True, slots=True)
class ApiError:
    """A kind of error of the model API."""

    kind: str
    retryable: bool
    remedy: str = ""
    retry_after_seconds: float | None = None
    """The shortest wait before a retry, in seconds, if the message names no time."""


_ANOTHER_MODEL: Final = (
    "Start a new work order with a model that the account has: `--model MODEL`, or `--step STEP.model=MODEL` "
    "where the repository names one for the step."
)
_AUTHENTICATION: Final = ApiError(
    "authentication",
    retryable=False,
    remedy=(
        "Where the worker (`septet up`) runs, log in with the agent's CLI, or set its API key and start the "
        "worker again; then run `septet retry`."
    ),
)
_BILLING: Final = ApiError(
    "billing",
    retryable=False,
    remedy=(
        "Add credit to the account or raise its limit (an administrator may have to), then run `septet retry`; or "
        "start a new work order with another `--agent`."
    ),
)
_NO_QUOTA: Final = ApiError(
    "billing",
    retryable=False,
    remedy=f"The account's plan does not include this model. {_ANOTHER_MODEL}",
)
_PERMISSION: Final = ApiError(
    "permission",
    retryable=False,
    remedy=f"Give the account access, then run `septet retry`. Or: {_ANOTHER_MODEL}",
)
_MODEL: Final = ApiError("unknown_model", retryable=False, remedy=_ANOTHER_MODEL)
_CONTEXT: Final = ApiError(
    "context_length", retryable=False, remedy="Split the work into smaller issues, or choose a larger model."
)
REFUSAL: Final = ApiError(
    "refusal",
    retryable=False,
    remedy=(
        "Reword the issue and start a new work order; or start one with another model (`--model`), or with an "
        "agent that takes over where this one refuses (`--fallback-agent`)."
    ),
)
_REQUEST: Final = ApiError(
    "invalid_request", retryable=False, remedy="Read the run's stdout.jsonl for what was refused."
)
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


def classify(status: int | None, words: str, *, kind: str = "unknown") -> ApiError:
    """Return the kind of an error; a billing error that names a time at which it ends counts as a rate limit.

    A status in the message takes precedence over `status`; `kind` is the kind by the CLI's own word, which
    counts if neither status nor message shows the kind.
    """
    match = STATUS.search(words)
    named = int(next(filter(None, match.groups()))) if match else None
    error = _by_words_or_status(named or status, words) or _BY_KIND[kind]
    return _RATE_LIMIT if error is _BILLING and names_reset(words) else error


def _by_words_or_status(status: int | None, words: str) -> ApiError | None:
    for kind, pattern in SURE:
        if pattern.search(words):
            return _BY_KIND[kind]
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status in _SERVER_ERRORS:
        return _SERVER
    if status in _CLIENT_ERRORS:
        return _REQUEST
    return next((_BY_KIND[kind] for kind, pattern in LIKELY if pattern.search(words)), None)
