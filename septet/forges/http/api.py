"""An API over HTTP: its address, the key for it, and the words with which it refuses."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from septet.forges.http.refusals import ApiRefusal, read_refusal

if TYPE_CHECKING:
    import httpx

    from septet.forges.http.client import ApiClient

ASKING_SECONDS: Final = 180.0
"""For all that is asked at once: a thousand issues are twenty pages."""


@dataclass(frozen=True, slots=True)
class HttpApi:
    """An API, and all in which APIs differ."""

    service: str
    """Its name, for people: `GitLab`."""
    url: str
    """Its address, without a slash at its end."""
    token: str | None = field(default=None, repr=False)
    remedies: Mapping[int, str] = field(default_factory=dict)
    """What helps, by the status of an answer."""
    refusals: tuple[tuple[str, str], ...] = ()
    """What helps, by words of a refusal in lower case."""
    unnamed_seconds: float = 1.0
    """After a refusal for which it names no time, a read is sent again so much later."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """What each request has besides."""
    page_field: str = "per_page"
    """The parameter by which a page's size is asked for."""
    page_size: int = 100
    scheme: str = "Bearer "
    """What stands before the token."""
    read_refusal: Callable[["HttpApi", "httpx.Response"], ApiRefusal | None] = read_refusal

    @contextmanager
    def asking(
        self, what: str, root: str = "", *, within_seconds: float = ASKING_SECONDS, tail_bytes: int = 0
    ) -> Iterator["ApiClient"]:
        """Give a client for the block, and turn what goes wrong in the block into errors of ours.

        httpx is imported here: a worker whose repositories are local does not need it.

        Args:
            what: What is asked, for errors.
            root: The path below which paths without a slash at their beginning lie.
            within_seconds: After that nothing more is asked or read.
            tail_bytes: Of an answer that is a log, what is kept of its end; 0: answers are taken whole.

        Raises:
            ForgeUnavailableError: The API did not answer, wants to be left alone, did not answer its JSON, or
                answered more than is read.
            NotFoundError: There is no such thing, or the token may not see it.
            InvalidInputError: It is in another repository now.
            ForgeRefusedError: It is there already, or the API takes it for invalid.
            ForgeError: It refused otherwise.
        """
        from septet.forges.http.client import open_client

        with open_client(self, what, root, within_seconds, tail_bytes) as client:
            yield client
