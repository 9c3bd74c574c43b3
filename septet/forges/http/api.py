"""An API over HTTP: its address, its key, and what its refusals mean."""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pydantic_core import from_json

from septet.errors import ForgeError, ForgeUnavailableError, NotFoundError, SeptetError
from septet.forges.http.pauses import is_spent, pause_seconds
from septet.system.text import without_controls

if TYPE_CHECKING:
    import httpx

    from septet.forges.http.client import ApiClient

SERVER_ERRORS: Final = 500
BUSY: Final = frozenset({408, 425, 429})
_ERRORS: Final = 400
_TOO_MANY: Final = 429
_LIMIT_WORDS: Final = re.compile(r"secondary rate limit|abuse detection|rate limit exceeded", re.IGNORECASE)
"""GitHub's words for a limit that is in no header."""
_REFUSED: Final = frozenset({400, 409, 412, 422})
_PAGE_TITLE: Final = re.compile(r"<title[^>]*>([^<]{1,100})</title>", re.IGNORECASE)


class ForgeRefusedError(ForgeError):
    """The forge refused the request: the object exists already, or a value is not valid."""


@dataclass(frozen=True, slots=True)
class ApiRefusal:
    """Why an API refused a request."""

    words: str
    error: type[SeptetError] = ForgeUnavailableError
    remedy: str = ""
    seconds: float | None = None
    """How many seconds the API wants us to wait; `None` if it names no time."""
    is_limit: bool = False
    """Whether the key's rate limit is used up, so that no request may use the key now."""
    is_told: bool = False
    """Whether the API itself reports a used-up limit, and not only too many requests."""


def read_refusal(api: "HttpApi", response: "httpx.Response") -> ApiRefusal | None:
    """Return the refusal in an answer, by its status and words; `None` if it is no refusal."""
    status = response.status_code
    if status < _ERRORS:
        return None
    try:
        answer = from_json(response.content)
    except ValueError:  # such as a proxy's page
        answer = None
    fields = answer if isinstance(answer, dict) else {}
    reason = fields.get("message") or fields.get("error_description") or fields.get("error")
    reasons = filter(None, map(_words_of, (reason, fields.get("errors"))))
    words, seconds = bounded_words("; ".join(reasons), response), pause_seconds(response.headers)
    if status in {403, 429}:
        is_told = is_spent(response.headers) or _LIMIT_WORDS.search(words) is not None
        if seconds is not None or is_told or status == _TOO_MANY:
            return ApiRefusal(words, seconds=seconds, is_limit=True, is_told=is_told)
    if status >= SERVER_ERRORS or status in BUSY:
        return ApiRefusal(words, seconds=seconds)
    helps = (remedy for part, remedy in api.refusals if part in words.lower())
    kind = NotFoundError if status in {404, 410} else ForgeRefusedError if status in _REFUSED else ForgeError
    return ApiRefusal(words, kind, next(helps, api.remedies.get(status, "")))


def bounded_words(words: str, response: "httpx.Response") -> str:
    """Return an API's words cut to a limit; if `words` is empty, the words of the status."""
    return (words or response.reason_phrase or "no reason given")[:1000]


def describe_answer(answer: "httpx.Response | None") -> str:
    """Describe an answer that is not the API's JSON, such as a sign-in page."""
    content = answer.content if answer is not None and answer.is_stream_consumed else b""
    if answer is None or not content:
        return ": the answer was empty"
    text = content[:4000].decode(errors="replace").strip()
    if text.startswith("<"):
        title = _PAGE_TITLE.search(text)
        named = f" “{' '.join(without_controls(title[1]).split())}”" if title else ""
        host = answer.url.host
        return f": {host} answered a page{named} in place of JSON, as a proxy or a sign-in in front of it does"
    return f": the answer began with {' '.join(without_controls(text).split())[:80]!r}"


def _words_of(reason: object) -> str:
    """Return the text of a reason, which may be a text, a list, or an object with field names."""
    if isinstance(reason, list):
        return "; ".join(filter(None, map(_words_of, reason)))
    if not isinstance(reason, dict):
        return str(reason or "")
    if reason.get("message"):
        return str(reason["message"])
    if "code" in reason:
        return " ".join(str(reason[name]) for name in ("resource", "field", "code") if reason.get(name))
    return "; ".join(f"{name} {_words_of(each)}" for name, each in reason.items())


ASKING_SECONDS: Final = 180.0
"""The most seconds for all requests of one client: a thousand issues take twenty requests."""


@dataclass(frozen=True, slots=True)
class HttpApi:
    """The address and the key of an API, and the ways in which it differs from other APIs."""

    service: str
    """The API's name for people, such as `GitLab`."""
    url: str
    """The API's address, without a slash at the end."""
    token: str | None = field(default=None, repr=False)
    remedies: Mapping[int, str] = field(default_factory=dict)
    """Remedies for people, by the status of an answer."""
    refusals: tuple[tuple[str, str], ...] = ()
    """Remedies for people, by a part of the refusal's words in lower case."""
    unnamed_seconds: float = 1.0
    """The seconds before the first repetition of a read, if the refusal names no time."""
    headers: Mapping[str, str] = field(default_factory=dict)
    page_field: str = "per_page"
    """The query parameter for the size of a page."""
    page_size: int = 100
    scheme: str = "Bearer "
    """The text before the token in the `Authorization` header."""
    read_refusal: Callable[["HttpApi", "httpx.Response"], ApiRefusal | None] = read_refusal

    @contextmanager
    def asking(
        self, what: str, root: str = "", *, within_seconds: float = ASKING_SECONDS, tail_bytes: int = 0
    ) -> Iterator["ApiClient"]:
        """Give the block a client for this API, and turn the API's failures into Septet's errors.

        `what` describes the request in errors. `root` precedes paths that do not begin with a slash. If
        `tail_bytes` is not 0, answers are logs, and only this many bytes of a log's end are kept. httpx is
        imported only here, because a worker with only local repositories does not need httpx.

        Raises:
            ForgeUnavailableError: The API did not answer, requests a pause, did not answer with its JSON, or
                answered too much or too slowly.
            NotFoundError: The thing does not exist, or the token may not see it.
            InvalidInputError: The thing is in another repository now.
            ForgeRefusedError: The thing exists already, or the API calls it invalid.
            ForgeError: The API refused for another reason.
        """
        from septet.forges.http.client import open_client

        with open_client(self, what, root, within_seconds, tail_bytes) as client:
            yield client


_MOST_KEYS: Final = 100
BOT: Final = "[bot]"
"""The ending of the names of GitHub's Apps, which no person's name has."""
_accounts: Final[dict[tuple[str, str | None], str]] = {}
"""The accounts of this process's keys by API and key, each requested once."""
_lock: Final = threading.Lock()


def account_of_key(api: HttpApi, ask: Callable[[], str]) -> str:
    """Return the account that `ask` reads for an API's key; empty if the forge refuses to report the account.

    Raises:
        ForgeUnavailableError: The forge did not answer.
    """
    key = (api.url, api.token)
    with _lock:
        if (name := _accounts.get(key)) is not None:
            return name
    try:
        name = ask()
    except ForgeUnavailableError:
        raise
    except (ForgeError, NotFoundError):
        name = ""
    with _lock:
        while len(_accounts) >= _MOST_KEYS:
            del _accounts[next(iter(_accounts))]
        _accounts[key] = name
    return name
