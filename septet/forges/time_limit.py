"""One limit of time for all that is asked of a forge at once: answers in pages, and bytes that only trickle."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """From now on; a client checks it before each request, and with each piece of an answer's body."""

    seconds: float
    _ends_at: float = field(init=False)
    """By the monotonic clock."""

    def __post_init__(self) -> None:
        """Begin."""
        object.__setattr__(self, "_ends_at", time.monotonic() + self.seconds)

    def check(self) -> None:
        """See that there is time left.

        Raises:
            ReadTimeout: There is none.
        """
        if time.monotonic() > self._ends_at:
            raise httpx.ReadTimeout(f"no whole answer within {self.seconds:.0f} s")

    def before(self, request: httpx.Request) -> None:
        """Check before a request."""
        del request
        self.check()

    def over(self, response: httpx.Response) -> None:
        """Check while the body of an answer is read."""
        if isinstance(response.stream, httpx.SyncByteStream):
            response.stream = _LimitedStream(response.stream, self)


class _LimitedStream(httpx.SyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream, limit: TimeLimit) -> None:
        self._stream = stream
        self._limit = limit

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            self._limit.check()
            yield piece

    def close(self) -> None:
        self._stream.close()
