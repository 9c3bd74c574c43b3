"""The HTTP client for forges and trackers: bounds of time and size, and Septet's errors."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import TypeAdapter
from pydantic_core import from_json

from septet.errors import ForgeUnavailableError, SeptetError
from septet.forges.http.answer_bounds import AnswerBounds, TooMuchError
from septet.forges.http.api import HttpApi
from septet.forges.http.pauses import PAUSES, ForgePatience
from septet.forges.http.redirects import check_redirect
from septet.forges.http.refusals import ApiRefusal, describe_answer, explain_unreached
from septet.telemetry.metrics import FORGE_REQUESTS, FORGE_SECONDS
from septet.telemetry.recorder import RECORDER

MOST_PAGES: Final = 50
"""The most pages of one list."""
_NOT_MODIFIED: Final = 304
_READS: Final = frozenset({"GET", "HEAD"})
_BEGAN_AT: Final = "septet_began_at"

Query = Mapping[str, str | int | Sequence[int]]
T = TypeVar("T")


@dataclass(slots=True)
class ApiClient:
    """Sends requests to one API, for one purpose."""

    api: HttpApi
    what: str
    """The request in words, for errors."""
    root: str
    """The base address of paths that do not begin with a slash."""
    http: httpx.Client
    patience: ForgePatience
    last: httpx.Response | None = None
    """The last answer."""

    def get(self, form: type[T], path: str, query: Query | None = None) -> T:
        """Read a path and return the answer as a value of type `form`."""
        return read_as(form, self.send("GET", path, query=query))

    def pages(
        self, form: type[T], path: str, query: Query | None = None, most: int = MOST_PAGES
    ) -> Iterator[list[T]]:
        """Yield a list page by page, at most `most` pages."""
        for page in range(1, most + 1):
            answers = self.get(list[form], path, self.page_query(query or {}, page))  # type: ignore[valid-type]
            yield answers
            if len(answers) < self.api.page_size:
                return

    def read_list(self, form: type[T], path: str, query: Query | None = None, most: int = MOST_PAGES) -> list[T]:
        """Return a list, at most `most` pages."""
        return [each for page in self.pages(form, path, query, most) for each in page]

    def page_query(self, query: Query, page: int) -> Query:
        """Return the parameters that request a page of a list."""
        return {**query, self.api.page_field: self.api.page_size, "page": page}

    def get_if_changed(self, form: type[T], path: str, query: Query, etag: str) -> tuple[list[T], str] | None:
        """Return a page of a list and its ETag; `None` if `etag` still matches the page."""
        response = self.send("GET", path, query=query, headers={"If-None-Match": etag} if etag else None)
        if response.status_code == _NOT_MODIFIED:
            return None
        return read_as(list[form], response), response.headers.get("etag", "")  # type: ignore[valid-type]

    def post(self, form: type[T], path: str, body: Mapping[str, object]) -> T:
        """Send a body as JSON, and return the answer as a value of type `form`."""
        return read_as(form, self.write("POST", path, body))

    def write(self, method: str, path: str, body: Mapping[str, object] | None = None) -> httpx.Response:
        """Send a body as JSON, and return the answer."""
        return self.send(method, path, body=body)

    def ask_graphql(self, path: str, document: str, variables: Mapping[str, Any]) -> httpx.Response:
        """Send one operation of GraphQL, and return the answer; a query is a read."""
        is_read = document.lstrip().startswith("query")
        return self.send("POST", path, body={"query": document, "variables": dict(variables)}, is_read=is_read)

    def send(  # noqa: PLR0913 -- the parts of a request
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        is_read: bool = False,
    ) -> httpx.Response:
        """Send a request, and return the answer; repeat a read that the API refuses for a moment.

        Args:
            method: The method, such as `GET`.
            path: A path below the root; with a leading slash, below the API's own address; or a whole address.
            query: The query parameters.
            body: The value that is sent as JSON.
            headers: Additional headers of this request.
            is_read: Whether the request changes nothing although its method is not GET or HEAD.

        Raises:
            SeptetError: The API refused; as for `HttpApi.asking`.
        """
        request = self.http.build_request(method, self._address(path), params=query, json=body, headers=headers)
        while True:
            self.last = response = self.http.send(request)
            refusal = self.api.read_refusal(self.api, response)
            if refusal is None:
                self.patience.refusals = 0
                return response
            if not self._is_sent_again(refusal, is_read=is_read or method in _READS):
                raise self._error(response, refusal)

    def _address(self, path: str) -> str:
        if path.startswith("http"):
            return path
        if path.startswith("/") or not self.root:
            return self.api.url + path
        return f"{self.root}/{path}" if path else self.root

    def _is_sent_again(self, refusal: ApiRefusal, *, is_read: bool) -> bool:
        """Record the pause of a refusal; wait and return `True` if the request is a read to repeat soon."""
        if not refusal.is_limit:
            return False
        if refusal.seconds is not None:
            PAUSES.note(self.api.url, self.api.token, refusal.seconds)
            return is_read and self.patience.wait(refusal.seconds)
        return is_read and not refusal.is_told and self.patience.wait_unnamed(self.api.unnamed_seconds)

    def _error(self, response: httpx.Response, refusal: ApiRefusal) -> SeptetError:
        message = f"{self.api.url} answered {response.status_code} ({self.what}): {refusal.words}"
        seconds = refusal.seconds
        if refusal.is_limit and seconds is None:
            seconds = PAUSES.note_unnamed(self.api.url, self.api.token)
        return refusal.error(message, remedy=refusal.remedy, retry_after_seconds=seconds)


def read_as(form: type[T], response: httpx.Response) -> T:
    """Return the JSON of an answer as a value of type `form`.

    Raises:
        ValueError: The JSON is no such value.
    """
    return TypeAdapter(form).validate_python(from_json(response.content))


@contextmanager
def open_client(api: HttpApi, what: str, root: str, within_seconds: float, tail_bytes: int) -> Iterator[ApiClient]:
    """Yield a client for the block, and raise Septet's errors for its failures; as `HttpApi.asking`."""
    patience = ForgePatience()
    patience.await_turn(api.url, api.token, what)
    bounds = AnswerBounds(within_seconds, tail_bytes)

    def check(response: httpx.Response) -> None:
        if response.has_redirect_location:
            check_redirect(api, what, response)

    headers = {"User-Agent": "septet", "Accept": "application/json", **api.headers}
    if api.token:
        headers["Authorization"] = f"{api.scheme}{api.token}"
    http = bounds.client(headers, [_note_request], [_note_answer, check])
    client = ApiClient(api, what, api.url + root if root else "", http, patience)
    try:
        with bounds, http:
            yield client
    except TooMuchError as error:
        raise ForgeUnavailableError(f"{api.url} answered too much or too slowly ({what}): {error}.") from error
    except httpx.HTTPError as error:
        RECORDER.record(FORGE_REQUESTS, host=urlsplit(api.url).hostname, outcome="unreached")
        message = f"{api.url} could not be reached ({what}): {explain_unreached(error)}."
        raise ForgeUnavailableError(message) from error
    except (ValueError, TypeError) as error:
        message = f"{api.url} did not answer as {api.service} does ({what}){describe_answer(client.last)}."
        raise ForgeUnavailableError(message) from error


def _note_request(request: httpx.Request) -> None:
    """Record the start of a request, by the monotonic clock."""
    request.extensions[_BEGAN_AT] = time.monotonic()


def _note_answer(response: httpx.Response) -> None:
    """Record an API's answer by the class of its status, and its duration."""
    host, began_at = response.request.url.host, response.request.extensions.get(_BEGAN_AT)
    RECORDER.record(FORGE_REQUESTS, host=host, outcome=f"{response.status_code // 100}xx")
    if began_at is not None:
        RECORDER.record(FORGE_SECONDS, time.monotonic() - began_at, host=host)
