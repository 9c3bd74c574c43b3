"""An API over HTTP: the address, the key, and the reading of refusals."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from septet.forges.http.refusals import ApiRefusal, read_refusal

if TYPE_CHECKING:
    import httpx

    from septet.forges.http.client import ApiClient

ASKING_SECONDS: Final = 180.0
"""The seconds that one client has for all requests: a thousand issues are twenty pages."""


@dataclass(frozen=True, slots=True)
class HttpApi:
    """An API, with the properties in which APIs differ."""

    service: str
    """The API's name for people, such as `GitLab`."""
    url: str
    """The API's address, without a slash at the end."""
    token: str | None = field(default=None, repr=False)
    remedies: Mapping[int, str] = field(default_factory=dict)
    """The remedy, by the status of an answer."""
    refusals: tuple[tuple[str, str], ...] = ()
    """The remedy, by a part of a refusal's words in lower case."""
    unnamed_seconds: float = 1.0
    """The first wait before a read is repeated, if the refusal names no time."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Additional headers of each request."""
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
        """Yield a client for the block, and raise Septet's errors for its failures.

        httpx is imported here: a worker whose repositories are local does not need httpx.

        Args:
            what: The request in words, for errors.
            root: The base of paths that do not begin with a slash.
            within_seconds: The time for all requests and answers of the block.
            tail_bytes: The bytes that are kept of a log's end; 0: answers are read whole.

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
