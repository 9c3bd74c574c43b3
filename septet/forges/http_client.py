"""The HTTP client under the typed clients of GitLab and Gitea: limits of time, and errors with a remedy."""

import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import TypeAdapter
from pydantic_core import from_json

from septet.errors import ForgeError, ForgeUnavailableError, NotFoundError, SeptetError
from septet.forges.measures import note_answer, note_request, note_unreached
from septet.forges.pauses import PAUSES, pause_seconds

if TYPE_CHECKING:
    import httpx

_TIMEOUT_SECONDS: Final = 30.0
"""For a connection, and then for each piece of the answer."""
_ASKING_SECONDS: Final = 180.0
"""For all that is asked at once: a thousand issues are twenty pages."""
_SERVER_ERRORS: Final = 500
_ERRORS: Final = 400
_BUSY: Final = frozenset({408, 425, 429})
_LIMITED: Final = frozenset({403, 429})
_NOT_THERE: Final = frozenset({404, 410})
_REFUSED: Final = frozenset({400, 409, 412, 422})
_NOT_MODIFIED: Final = 304
_SHOWN: Final = 1000

T = TypeVar("T")


class ForgeRefusedError(ForgeError):
    """The forge would not do what was asked: it is there already, or is not valid."""


@dataclass(frozen=True, slots=True)
class ForgeApi:
    """Where a forge answers, and how it is asked."""

    forge: str
    """Its name, for people: `GitLab`."""
    url: str
    """The API's address, without a slash at its end."""
    token: str | None = field(default=None, repr=False)
    remedies: Mapping[int, str] = field(default_factory=dict)
    """What helps, by the status of an answer."""

    @contextmanager
    def asking(self, what: str, *, within_seconds: float = _ASKING_SECONDS) -> Iterator["httpx.Client"]:
        """Give an HTTP client for the block, and turn what goes wrong in it into errors of ours.

        Args:
            what: What is asked, for errors.
            within_seconds: After that nothing more is asked or read.

        Raises:
            ForgeUnavailableError: The forge did not answer, wants to be left alone, or did not answer its JSON.
            NotFoundError: There is no such thing, or the token may not see it.
            ForgeRefusedError: It is there already, or the forge takes it for invalid.
            ForgeError: It refused otherwise.
        """
        import httpx

        from septet.forges.time_limit import TimeLimit

        PAUSES.check(self.url, self.token, what)
        limit = TimeLimit(within_seconds)

        def refuse(response: httpx.Response) -> None:
            limit.over(response)
            if response.status_code >= _ERRORS:
                response.read()
                raise self._failure(what, response)

        hooks: dict[str, list[Callable[..., Any]]] = {
            "request": [limit.before, note_request],
            "response": [note_answer, refuse],
        }
        headers = {"User-Agent": "septet", "Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            with httpx.Client(
                headers=headers,
                timeout=_TIMEOUT_SECONDS,
                verify=trusted_authorities(),
                event_hooks=hooks,
            ) as client:
                yield client
        except httpx.HTTPError as error:
            note_unreached(self.url)
            raise ForgeUnavailableError(f"{self.url} could not be reached ({what}): {error!r}.") from error
        except (ValueError, TypeError) as error:
            raise ForgeUnavailableError(f"{self.url} did not answer as {self.forge} does ({what}).") from error

    def list_if_changed(
        self, what: str, url: str, query: Mapping[str, str | int], etag: str, form: type[T]
    ) -> tuple[T, str] | None:
        """Return a list as a value of type `form`, and its ETag; `None` where it is what `etag` stands for.

        Raises:
            ForgeUnavailableError, NotFoundError, ForgeError: As for `asking`.
        """
        with self.asking(what) as client:
            response = client.get(url, params=query, headers={"If-None-Match": etag} if etag else None)
            if response.status_code == _NOT_MODIFIED:
                return None
            answer = TypeAdapter(form).validate_python(from_json(response.content))
            return answer, response.headers.get("etag", "")

    def _failure(self, what: str, response: "httpx.Response") -> SeptetError:
        status = response.status_code
        message = f"{self.url} answered {status} ({what}): {_refusal_text(response)}"
        seconds = pause_seconds(response.headers)
        if status in _LIMITED and seconds is not None:
            PAUSES.note(self.url, self.token, seconds)
            return ForgeUnavailableError(message, retry_after_seconds=seconds)
        if status >= _SERVER_ERRORS or status in _BUSY:
            return ForgeUnavailableError(message, retry_after_seconds=seconds)
        if status in _REFUSED:
            return ForgeRefusedError(message, remedy=self.remedies.get(status, ""))
        kind = NotFoundError if status in _NOT_THERE else ForgeError
        return kind(message, remedy=self.remedies.get(status, ""))


@cache
def trusted_authorities() -> ssl.SSLContext:
    """Return the machine's trusted authorities: reading them takes longer than asking a forge."""
    import httpx

    return httpx.create_ssl_context()


def _refusal_text(response: "httpx.Response") -> str:
    """Return the forge's own words, within bounds; a proxy's page is none."""
    try:
        answer = from_json(response.content)
    except ValueError:
        answer = None
    words = answer if isinstance(answer, dict) else {}
    text = words.get("message") or words.get("error_description") or words.get("error")
    return str(text or response.reason_phrase or "no reason given")[:_SHOWN]
