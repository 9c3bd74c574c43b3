"""The HTTP client for forges and trackers, with limits for time and size, and with Septet's errors."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

import httpx
from pydantic import TypeAdapter
from pydantic_core import from_json

from septet.errors import ForgeError, ForgeUnavailableError, SeptetError
from septet.forges.http.answer_bounds import TIMEOUT_SECONDS, AnswerBounds, TooMuchError
from septet.forges.http.api import ApiRefusal, HttpApi, describe_answer
from septet.forges.http.pauses import PAUSES, ForgePatience
from septet.forges.renames import NAMES, moved_error
from septet.telemetry.metrics import FORGE_REQUESTS, FORGE_SECONDS
from septet.telemetry.recorder import RECORDER

_INSTALLATION: Final = "/installation"
"""The path by which an App reads its installation; no other request may use the App's own key."""
_REPOSITORY: Final = re.compile(
    r"^/(?:repos/(?P<name>[^/]+/[^/]+)|projects/(?P<path>[^/]+)|repositories/\d+)(?=/|$)"
)
"""The pattern of the repository in the paths of GitHub, Gitea and GitLab."""
_THING: Final = re.compile(r"^.*?/(?:issues|pulls|merge_requests)/(?P<number>\d{1,18})(?=[/?]|$)")


def check_redirect(api: HttpApi, what: str, response: httpx.Response) -> None:
    """Raise unless a redirect leads to the requested thing; call this before the redirect is followed.

    Raises:
        InvalidInputError: The requested thing is in another repository now.
        ForgeUnavailableError: The repository was renamed; the next request uses the new name.
        ForgeError: The API answers at another address.
    """
    request, there = response.request, response.request.url.join(response.headers["location"])
    asked, led = _repository_in(api.url, str(request.url)), _repository_in(api.url, str(there))
    if asked and led:
        if not str(request.url).endswith(_INSTALLATION):
            raise _explain_redirect(api, asked, str(there), request)
    elif request.method != "GET" or there.raw_path == request.url.raw_path:
        raise ForgeError(
            f"{api.url} answered {response.status_code} ({what}): it leads to {there.copy_with(query=None)}.",
            remedy=f"Start the worker (`septet up`) again with SEPTET_{api.service.upper()}_API_URL set to the "
            "address that answers without leading elsewhere, then run `septet retry ID`.",
        )


def _explain_redirect(api: HttpApi, repository: str, there: str, request: httpx.Request) -> SeptetError:
    """Return the error for a redirect: the repository was renamed, or the thing is in another repository now."""
    match = _REPOSITORY.match(repository)
    project = unquote(match["name"] or match["path"] or "") if match is not None else ""
    name = _ask(api.url + repository, request, ("full_name", "path_with_namespace"))
    if not name:
        return ForgeUnavailableError(f"{api.url} does not tell what has become of {project}.")
    if name.lower() != project.lower():
        NAMES.note(api.url, project, name)
        message = f"{project} is named {name} on {api.service} now; it is asked by that name from now on."
        return ForgeUnavailableError(message, retry_after_seconds=0.2)
    asked, led = _THING.match(str(request.url)), _THING.match(there)
    url = _ask(led[0], request, ("html_url", "web_url")) if led is not None else ""
    return moved_error(project, int(asked["number"]) if asked is not None else None, url)


def _repository_in(api_url: str, url: str) -> str:
    """Return the part of an address that names a repository of this API; empty if there is none."""
    match = _REPOSITORY.match(url.removeprefix(api_url)) if url.startswith(api_url) else None
    return match[0] if match is not None else ""


def _ask(url: str, like: httpx.Request, names: tuple[str, ...]) -> str:
    """Get the JSON at `url` with the login of `like`; return the first text in fields `names`, else no text."""
    headers = {name: like.headers[name] for name in ("authorization", "user-agent") if name in like.headers}
    bounds = AnswerBounds(TIMEOUT_SECONDS)
    try:
        with bounds, bounds.client(headers) as client:
            answer = client.get(url).json()
    except (httpx.HTTPError, ValueError):
        return ""
    found = (answer.get(name) for name in names) if isinstance(answer, Mapping) else ()
    return next((each for each in found if isinstance(each, str) and each), "")


MOST_PAGES: Final = 50
"""The most pages of one list."""
_NOT_MODIFIED: Final = 304
_ERRNO: Final = re.compile(r"^\[(?:Errno )?-?\w+\] ")
_BETWEEN_WORDS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_BEGAN_AT: Final = "septet_began_at"

Query = Mapping[str, str | int | Sequence[int]]
T = TypeVar("T")


@dataclass(slots=True)
class ApiClient:
    """Sends requests to one API for one purpose, within limits."""

    api: HttpApi
    what: str
    """What the requests are for, in words for errors."""
    root: str
    """The base of paths that do not begin with a slash."""
    http: httpx.Client
    patience: ForgePatience
    last: httpx.Response | None = None

    def get(self, form: type[T], path: str, query: Query | None = None) -> T:
        """Send a GET request for a path, and return the answer as a value of type `form`."""
        return read_as(form, self.send("GET", path, query=query))

    def pages(
        self, form: type[T], path: str, query: Query | None = None, most: int = MOST_PAGES
    ) -> Iterator[list[T]]:
        """Yield the pages of a list, at most `most`."""
        for page in range(1, most + 1):
            answers = self.get(list[form], path, self.page_query(query or {}, page))  # type: ignore[valid-type]
            yield answers
            if len(answers) < self.api.page_size:
                return

    def read_list(self, form: type[T], path: str, query: Query | None = None, most: int = MOST_PAGES) -> list[T]:
        """Return the elements of a list, from at most `most` pages."""
        return [each for page in self.pages(form, path, query, most) for each in page]

    def page_query(self, query: Query, page: int) -> Query:
        """Return the query for one page of a list."""
        return {**query, self.api.page_field: self.api.page_size, "page": page}

    def get_if_changed(self, form: type[T], path: str, query: Query, etag: str) -> tuple[list[T], str] | None:
        """Return a page of a list, and the page's ETag; `None` if the page has not changed since `etag`."""
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
        """Send a GraphQL operation, and return the answer; a query counts as a read."""
        body = {"query": document, "variables": dict(variables)}
        request = self.http.build_request("POST", self._address(path), json=body)
        return self._exchange(request, is_read=document.lstrip().startswith("query"))

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send a request, and return the answer; a read that a limit refused is sent again after a short pause.

        `path` follows the root; with a leading slash it follows the API's address, and a whole address is used as
        it is. `body` is sent as JSON.

        Raises:
            SeptetError: The same errors as those of `HttpApi.asking`.
        """
        request = self.http.build_request(method, self._address(path), params=query, json=body, headers=headers)
        return self._exchange(request, is_read=method in {"GET", "HEAD"})

    def _exchange(self, request: httpx.Request, *, is_read: bool) -> httpx.Response:
        while True:
            self.last = response = self.http.send(request)
            refusal = self.api.read_refusal(self.api, response)
            if refusal is None:
                self.patience.refusals = 0
                return response
            if self._is_sent_again(refusal, is_read=is_read):
                continue
            seconds = refusal.seconds
            if refusal.is_limit and seconds is None:
                seconds = PAUSES.note_unnamed(self.api.url, self.api.token)
            message = f"{self.api.url} answered {response.status_code} ({self.what}): {refusal.words}"
            raise refusal.error(message, remedy=refusal.remedy, retry_after_seconds=seconds)

    def _address(self, path: str) -> str:
        if path.startswith("http"):
            return path
        if path.startswith("/") or not self.root:
            return self.api.url + path
        return f"{self.root}/{path}" if path else self.root

    def _is_sent_again(self, refusal: ApiRefusal, *, is_read: bool) -> bool:
        """Record the pause that a refusal requests; for a read with a short pause, wait and return `True`."""
        if not refusal.is_limit:
            return False
        if refusal.seconds is not None:
            PAUSES.note(self.api.url, self.api.token, refusal.seconds)
            return is_read and self.patience.wait(refusal.seconds)
        return is_read and not refusal.is_told and self.patience.wait_unnamed(self.api.unnamed_seconds)


def read_as(form: type[T], response: httpx.Response) -> T:
    """Return the JSON of an answer as a value of type `form`.

    Raises:
        ValueError: The JSON is no such value.
    """
    return TypeAdapter(form).validate_python(from_json(response.content))


@contextmanager
def open_client(api: HttpApi, what: str, root: str, within_seconds: float, tail_bytes: int) -> Iterator[ApiClient]:
    """Yield a client, and turn the failures of its requests into Septet's errors; see `HttpApi.asking`."""
    patience = ForgePatience()
    patience.await_turn(api.url, api.token, what)
    bounds = AnswerBounds(within_seconds, tail_bytes)

    def note_request(request: httpx.Request) -> None:
        request.extensions[_BEGAN_AT] = time.monotonic()

    def note_answer(response: httpx.Response) -> None:
        host, began_at = response.request.url.host, response.request.extensions.get(_BEGAN_AT)
        RECORDER.record(FORGE_REQUESTS, host=host, outcome=f"{response.status_code // 100}xx")
        if began_at is not None:
            RECORDER.record(FORGE_SECONDS, time.monotonic() - began_at, host=host)
        if response.has_redirect_location:
            check_redirect(api, what, response)

    headers = {"User-Agent": "septet", "Accept": "application/json", **api.headers}
    if api.token:
        headers["Authorization"] = f"{api.scheme}{api.token}"
    http = bounds.client(headers, [note_request], [note_answer])
    client = ApiClient(api, what, api.url + root if root else "", http, patience)
    try:
        with bounds, http:
            yield client
    except TooMuchError as error:
        raise ForgeUnavailableError(f"{api.url} answered too much or too slowly ({what}): {error}.") from error
    except httpx.HTTPError as error:
        RECORDER.record(FORGE_REQUESTS, host=urlsplit(api.url).hostname, outcome="unreached")
        words = _ERRNO.sub("", str(error)).strip().removesuffix(".")
        words = words or _BETWEEN_WORDS.sub(" ", type(error).__name__).lower()
        message = f"{api.url} could not be reached ({what}): {words}."
        raise ForgeUnavailableError(message) from error
    except (ValueError, TypeError) as error:
        message = f"{api.url} did not answer as {api.service} does ({what}){describe_answer(client.last)}."
        raise ForgeUnavailableError(message) from error
