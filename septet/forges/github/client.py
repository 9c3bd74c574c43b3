"""Asking GitHub: a client for one question, and errors that name cause, place and remedy."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import TypeAdapter

from septet.forges.http_client import ASKING_SECONDS, TIMEOUT_SECONDS, ForgeApi, trusted_authorities
from septet.forges.patience import AskAgainError

if TYPE_CHECKING:
    from githubkit import GitHub, Response
    from githubkit.exception import GitHubException
    from githubkit.retry import RetryOption

_RIGHTS: Final = "Give the token the permissions that `septet docs forges` lists, on this repository."
_REMEDIES: Final = {
    401: "Set SEPTET_GITHUB_TOKEN to a token that is valid for this forge, and restart the worker.",
    403: _RIGHTS,
    404: "Check the name and number; a private repository that the token may not read looks the same. " + _RIGHTS,
    410: "The issue was deleted, or the repository has no issues.",
}
_REFUSALS: Final = (
    ("no commits between", "The branch has nothing that its base does not have: there is nothing to merge."),
    ("draft pull requests are not supported", "Ask for a pull request that is not a draft."),
    ("pullrequest head", "The branch is not there: `septet retry` pushes it again."),
    ("pullrequest base", "Name a base that the repository has."),
)
_UNNAMED_SECONDS: Final = 60.0
"""GitHub wants at least a minute where it names no time."""
_AT_ONCE: Final = timedelta(microseconds=1)
"""githubkit waits for a minute where it is told no time."""

T = TypeVar("T")


@contextmanager
def asking(
    api_url: str, token: str | None, what: str, *, within_seconds: float = ASKING_SECONDS, tail_bytes: int = 0
) -> Iterator["GitHub[Any]"]:
    """Give a client for the block, and turn what goes wrong in it into errors of ours.

    githubkit is imported here, for it takes a third of a second.

    Args:
        api_url: The API's address.
        token: The worker's key.
        what: What is asked, for errors.
        within_seconds: After that nothing more is asked or read.
        tail_bytes: Of an answer that is a log, what is kept of its end.

    Raises:
        SeptetError: As for `ForgeApi.hooks`.
    """
    from githubkit import GitHub
    from githubkit.exception import RequestError

    api = ForgeApi("GitHub", api_url, token, _REMEDIES, _REFUSALS, _UNNAMED_SECONDS)
    with api.hooks(what, within_seconds=within_seconds, tail_bytes=tail_bytes) as hooks:
        client = GitHub(
            token,
            base_url=api_url,
            user_agent="septet",
            timeout=TIMEOUT_SECONDS,
            event_hooks=hooks,
            ssl_verify=trusted_authorities(),
            auto_retry=_retry,
            http_cache=False,
        )
        try:
            with client as github:
                yield github
        except RequestError as error:
            error.__cause__ = error.__context__ = None  # or what it wraps would be its own cause
            raise error.exc from None


def _retry(error: "GitHubException", _tries: int) -> "RetryOption":
    """Send a read again that was refused for a moment; else the workflow retries, and is seen to."""
    from githubkit.retry import RetryOption

    return RetryOption(isinstance(getattr(error, "exc", None), AskAgainError), _AT_ONCE)


def read(form: type[T], answer: "Response") -> T:
    """Return what GitHub answered as a value of type `form`.

    Raises:
        ValueError: It is no such value.
    """
    return TypeAdapter(form).validate_python(answer.json())
