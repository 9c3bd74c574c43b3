"""What all forges are asked through: limits of time, redirects, and errors with a remedy."""

import re
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
from septet.forges.patience import AskAgainError, ForgePatience
from septet.forges.pauses import PAUSES, is_spent, pause_seconds
from septet.forges.renames import look_at_redirect
from septet.system.text import without_controls

if TYPE_CHECKING:
    import httpx

TIMEOUT_SECONDS: Final = 30.0
"""For a connection, and then for each piece of the answer."""
ASKING_SECONDS: Final = 180.0
"""For all that is asked at once: a thousand issues are twenty pages."""
Hooks = dict[str, list[Callable[..., Any]]]
"""What a client of httpx calls for each request and each answer."""
_SERVER_ERRORS: Final = 500
_ERRORS: Final = 400
_BUSY: Final = frozenset({408, 425, 429})
_LIMITED: Final = frozenset({403, 429})
_TOO_MANY: Final = 429
_LIMIT_WORDS: Final = re.compile(r"secondary rate limit|abuse detection|rate limit exceeded", re.IGNORECASE)
"""How GitHub names a limit of which no header tells."""
_NOT_THERE: Final = frozenset({404, 410})
_REFUSED: Final = frozenset({400, 409, 412, 422})
_NOT_MODIFIED: Final = 304
_READS: Final = frozenset({"GET", "HEAD"})
_SOON_SECONDS: Final = 1.0
_ERRNO: Final = re.compile(r"^\[(?:Errno )?-?\w+\] ")
_BETWEEN_WORDS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SHOWN: Final = 1000
_SHOWN_OF_PAGE: Final = 4000
_SHOWN_WORDS: Final = 80
_PAGE_TITLE: Final = re.compile(r"<title[^>]*>([^<]{1,100})</title>", re.IGNORECASE)

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
    refusals: tuple[tuple[str, str], ...] = ()
    """What helps, by words of a refusal in lower case."""
    unnamed_seconds: float = _SOON_SECONDS
    """After a refusal for which it names no time, a read is sent again so much later."""

    @contextmanager
    def asking(
        self, what: str, *, within_seconds: float = ASKING_SECONDS, tail_bytes: int = 0
    ) -> Iterator["httpx.Client"]:
        """Give an HTTP client for the block, and turn what goes wrong in it into errors of ours; as `hooks`."""
        from septet.forges.patient_client import PatientClient

        headers = {"User-Agent": "septet", "Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        with (
            self.hooks(what, within_seconds=within_seconds, tail_bytes=tail_bytes) as hooks,
            PatientClient(
                headers=headers,
                timeout=TIMEOUT_SECONDS,
                verify=trusted_authorities(),
                event_hooks=hooks,
                follow_redirects=True,
            ) as client,
        ):
            yield client

    @contextmanager
    def hooks(self, what: str, *, within_seconds: float = ASKING_SECONDS, tail_bytes: int = 0) -> Iterator[Hooks]:
        """Give the hooks of an HTTP client for the block, and turn what goes wrong in it into errors of ours.

        They wait where a read is refused for a moment, and raise `AskAgainError`: the client is to send it again.

        Args:
            what: What is asked, for errors.
            within_seconds: After that nothing more is asked or read.
            tail_bytes: Of an answer that is a log, what is kept of its end; 0: answers are taken whole.

        Raises:
            ForgeUnavailableError: The forge did not answer, wants to be left alone, did not answer its JSON, or
                answered more than is read.
            NotFoundError: There is no such thing, or the token may not see it.
            InvalidInputError: It is in another repository now.
            ForgeRefusedError: It is there already, or the forge takes it for invalid.
            ForgeError: It refused otherwise.
        """
        import httpx

        from septet.forges.answer_bounds import AnswerBounds, TooMuchError

        patience = ForgePatience()
        patience.await_turn(self.url, self.token, what)
        bounds = AnswerBounds(within_seconds, tail_bytes)
        last: list[httpx.Response] = []

        def look(response: httpx.Response) -> None:
            bounds.over(response)
            last[:] = [response]
            if response.has_redirect_location:
                look_at_redirect(self.forge, self.url, what, response)
            if response.status_code >= _ERRORS:
                response.read()
                raise self._failure(what, response, patience)
            patience.refusals = 0

        try:
            with bounds:
                yield {"request": [bounds.before, note_request], "response": [note_answer, look]}
        except TooMuchError as error:
            raise ForgeUnavailableError(
                f"{self.url} answered too much or too slowly ({what}): {error}."
            ) from error
        except httpx.HTTPError as error:
            note_unreached(self.url)
            raise ForgeUnavailableError(f"{self.url} could not be reached ({what}): {_why(error)}.") from error
        except (ValueError, TypeError) as error:
            message = f"{self.url} did not answer as {self.forge} does ({what}){_describe_answer(last)}."
            raise ForgeUnavailableError(message) from error

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

    def _failure(self, what: str, response: "httpx.Response", patience: ForgePatience) -> SeptetError:
        status, text = response.status_code, _refusal_text(response)
        message = f"{self.url} answered {status} ({what}): {text}"
        seconds = pause_seconds(response.headers)
        if status in _LIMITED:
            is_read = response.request.method in _READS
            is_told = is_spent(response.headers) or _LIMIT_WORDS.search(text)
            if seconds is not None:
                PAUSES.note(self.url, self.token, seconds)
                if is_read and patience.wait(seconds):
                    return AskAgainError(message)
            elif status == _TOO_MANY or is_told:
                if is_read and not is_told and patience.wait_unnamed(self.unnamed_seconds):
                    return AskAgainError(message)
                seconds = PAUSES.note_unnamed(self.url, self.token)
        if status >= _SERVER_ERRORS or status in _BUSY or (status in _LIMITED and seconds is not None):
            return ForgeUnavailableError(message, retry_after_seconds=seconds)
        helps = (remedy for words, remedy in self.refusals if words in text.lower())
        remedy = next(helps, self.remedies.get(status, ""))
        kind = NotFoundError if status in _NOT_THERE else ForgeRefusedError if status in _REFUSED else ForgeError
        return kind(message, remedy=remedy)


@cache
def trusted_authorities() -> ssl.SSLContext:
    """Return the machine's trusted authorities: reading them takes longer than asking a forge."""
    import httpx

    return httpx.create_ssl_context()


def _why(error: Exception) -> str:
    """Return why a forge was not reached, in the system's words; by its kind where there are none."""
    words = _ERRNO.sub("", str(error)).strip().removesuffix(".")
    return words or _BETWEEN_WORDS.sub(" ", type(error).__name__).lower()


def _refusal_text(response: "httpx.Response") -> str:
    """Return the forge's own words on one line, within bounds; a proxy's page is none."""
    try:
        answer = from_json(response.content)
    except ValueError:
        answer = None
    words = answer if isinstance(answer, dict) else {}
    reason = words.get("message") or words.get("error_description") or words.get("error")
    texts = [_words_of(reason), _words_of(words.get("errors"))]
    return ("; ".join(filter(None, texts)) or response.reason_phrase or "no reason given")[:_SHOWN]


def _words_of(reason: object) -> str:
    """Return a reason as people read it: a text, a list of them, or what is wrong by the name of a field."""
    if isinstance(reason, list):
        return "; ".join(filter(None, map(_words_of, reason)))
    if not isinstance(reason, dict):
        return str(reason or "")
    if reason.get("message"):
        return str(reason["message"])
    if "code" in reason:
        return " ".join(str(reason[name]) for name in ("resource", "field", "code") if reason.get(name))
    return "; ".join(f"{name} {_words_of(each)}" for name, each in reason.items())


def _describe_answer(answers: "list[httpx.Response]") -> str:
    """Say what an answer was that is not the forge's: a page to sign in, nothing, or an error's words."""
    content = answers[0].content if answers and answers[0].is_stream_consumed else b""
    if not content:
        return ": the answer was empty"
    text = content[:_SHOWN_OF_PAGE].decode(errors="replace").strip()
    if text.startswith("<"):
        title = _PAGE_TITLE.search(text)
        named = f" “{' '.join(without_controls(title[1]).split())}”" if title else ""
        host = answers[0].url.host
        return f": {host} answered a page{named} in place of JSON, as a proxy or a sign-in in front of it does"
    return f": the answer began with {' '.join(without_controls(text).split())[:_SHOWN_WORDS]!r}"
