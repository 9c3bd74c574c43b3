"""Asking GitHub: a client for one question, and errors that name cause, place and remedy."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from septet.errors import ForgeError, ForgeUnavailableError, NotFoundError, SeptetError
from septet.forges.github.answers import RefusalAnswer
from septet.forges.measures import note_answer, note_request, note_unreached
from septet.forges.pauses import PAUSES

if TYPE_CHECKING:
    from githubkit import GitHub, Response
    from githubkit.exception import RequestFailed

_TIMEOUT_SECONDS: Final = 30.0
"""For a connection, and then for each piece of the answer."""
_ASKING_SECONDS: Final = 180.0
"""For all that is asked at once: a thousand issues are ten pages."""
_TOO_MANY: Final = 429
_SERVER_ERRORS: Final = 500
_SHOWN: Final = 1000
_RIGHTS: Final = "Give the token the permissions that `septet docs forges` lists, on this repository."
_REMEDIES: Final = {
    401: "Set SEPTET_GITHUB_TOKEN to a token that is valid for this forge, and restart the worker.",
    403: _RIGHTS,
    404: "Check the name and number; a private repository that the token may not read looks the same. " + _RIGHTS,
    410: "The issue was deleted, or the repository has no issues.",
}
_NOT_THERE: Final = frozenset({404, 410})
_UNPROCESSABLE: Final = 422
_UNPROCESSABLE_REMEDIES: Final = (
    ("no commits between", "The branch has nothing that its base does not have: there is nothing to merge."),
    ("draft pull requests are not supported", "Ask for a pull request that is not a draft."),
    ("pullrequest head", "Push the branch first."),
    ("pullrequest base", "Name a base that the repository has."),
)

T = TypeVar("T")


class GitHubRefusedError(ForgeError):
    """GitHub would not do what was asked (status 422)."""


@contextmanager
def asking(
    api_url: str, token: str | None, what: str, *, within_seconds: float = _ASKING_SECONDS
) -> Iterator["GitHub[Any]"]:
    """Give a client for the block, and turn what goes wrong in it into errors of ours.

    githubkit is imported here, for it takes a third of a second.

    Args:
        api_url: The API's address.
        token: The worker's key.
        what: What is asked, for errors.
        within_seconds: After that nothing more is asked or read.

    Raises:
        ForgeUnavailableError: GitHub did not answer, was busy, or answered with something else than its JSON.
        NotFoundError: There is no such thing, or the token may not see it.
        GitHubRefusedError: Status 422.
        ForgeError: It refused otherwise.
    """
    from githubkit import GitHub
    from githubkit.exception import RateLimitExceeded, RequestError, RequestFailed

    from septet.forges.time_limit import TimeLimit

    PAUSES.check(api_url, token, what)
    limit = TimeLimit(within_seconds)
    hooks: dict[str, list[Callable[..., Any]]] = {
        "request": [limit.before, note_request],
        "response": [note_answer, limit.over],
    }
    client = GitHub(
        token,
        base_url=api_url,
        user_agent="septet",
        timeout=_TIMEOUT_SECONDS,
        event_hooks=hooks,
        ssl_verify=_tls(),
        auto_retry=False,  # the workflow retries, and is seen to
        http_cache=False,
    )
    try:
        with client as github:
            yield github
    except RateLimitExceeded as error:
        seconds = error.retry_after.total_seconds()
        PAUSES.note(api_url, token, seconds)
        message = f"{api_url} takes no more requests for {seconds:.0f} s ({what})."
        raise ForgeUnavailableError(message, retry_after_seconds=seconds) from error
    except RequestFailed as error:
        raise _failure(api_url, what, error) from error
    except RequestError as error:
        note_unreached(api_url)
        raise ForgeUnavailableError(f"{api_url} could not be reached ({what}): {error.exc!r}.") from error
    except ValueError as error:
        raise ForgeUnavailableError(f"{api_url} did not answer as GitHub does ({what}).") from error


def read(form: type[T], answer: "Response") -> T:
    """Return what GitHub answered as a value of type `form`.

    Raises:
        ValueError: It is no such value.
    """
    return TypeAdapter(form).validate_python(answer.json())


@cache
def _tls() -> ssl.SSLContext:
    """Return the machine's trusted authorities: reading them takes longer than asking GitHub."""
    import httpx

    return httpx.create_ssl_context()


def _failure(api_url: str, what: str, error: "RequestFailed") -> SeptetError:
    status = error.response.status_code
    text = _refusal_text(error)
    message = f"{api_url} answered {status} ({what}): {text}"
    if status >= _SERVER_ERRORS or status == _TOO_MANY:
        return ForgeUnavailableError(
            message, retry_after_seconds=_seconds(error.response.headers.get("retry-after"))
        )
    if status == _UNPROCESSABLE:
        remedies = (remedy for words, remedy in _UNPROCESSABLE_REMEDIES if words in text.lower())
        return GitHubRefusedError(message, remedy=next(remedies, ""))
    kind = NotFoundError if status in _NOT_THERE else ForgeError
    return kind(message, remedy=_REMEDIES.get(status, ""))


def _refusal_text(error: "RequestFailed") -> str:
    """Return GitHub's own words, within bounds; a proxy's page is none."""
    try:
        text = RefusalAnswer.model_validate_json(error.response.content).text
    except ValidationError:
        text = ""
    return (text or error.response.reason_phrase or "no reason given")[:_SHOWN]


def _seconds(retry_after: str | None) -> float | None:
    return float(retry_after) if retry_after is not None and retry_after.isdecimal() else None
