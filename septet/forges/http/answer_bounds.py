"""Limits for a forge's answers: a time, and a number of unpacked bytes. Of a log, only the end is kept."""

import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Self

import httpx

TIMEOUT_SECONDS: Final = 30.0
"""The most seconds for a connection, and then for each part of an answer."""
MOST_BYTES: Final = 16 * 1024 * 1024
"""The most bytes of one answer: twice a page of a hundred issues with the longest texts."""
MOST_BYTES_IN_ALL: Final = 64 * 1024 * 1024
"""The most bytes of all answers in one `with` block."""
MOST_LOG_BYTES: Final = 256 * 1024 * 1024
"""The most bytes of a log that are read to reach its end."""
CUT_LOG: Final = b"\n(The log goes on: only its first 256 MiB were read.)\n"
Hooks = Sequence[Callable[..., Any]]


class TooMuchError(httpx.TransportError):
    """An answer is too large or takes too long."""


@dataclass(slots=True)
class AnswerBounds:
    """Limits for all requests in one `with` block."""

    seconds: float
    tail_bytes: int = 0
    """How many bytes of a log's end to return; 0 for whole answers."""
    _ends_at: float = field(init=False)
    """When the block's time is over, by the monotonic clock."""
    _left_bytes: int = MOST_BYTES_IN_ALL
    _sockets: list[socket.socket] = field(default_factory=list)
    _timer: threading.Timer = field(init=False)

    def __enter__(self) -> Self:
        """Start the timer that limits all requests in the block together."""
        self._ends_at = time.monotonic() + self.seconds
        self._timer = threading.Timer(self.seconds, self._hang_up)
        self._timer.daemon = True
        self._timer.start()
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        """Stop the timer; if it ran out, raise `TooMuchError` in place of a transport error."""
        self._timer.cancel()
        if isinstance(error, httpx.TransportError):
            self.check()

    def client(self, headers: Mapping[str, str], request: Hooks = (), response: Hooks = ()) -> httpx.Client:
        """Return a client that keeps the limits and follows redirects; the hooks also see redirects."""
        return httpx.Client(
            headers=headers,
            timeout=TIMEOUT_SECONDS,
            verify=trusted_authorities(),
            event_hooks={"request": [self.before, *request], "response": [self.over, *response]},
            follow_redirects=True,
        )

    def before(self, request: httpx.Request) -> None:
        """Raise `TooMuchError` if the time is over; request gzip, the only packed form that is accepted."""
        self.check()
        request.headers["Accept-Encoding"] = "gzip"
        request.extensions["trace"] = self._trace

    def over(self, response: httpx.Response) -> None:
        """Replace an answer's body by a stream that keeps the limits while it is read.

        Raises:
            DecodingError: The answer is packed in another form than gzip.
        """
        packing = response.headers.pop("content-encoding", "identity").lower()
        if packing not in {"identity", "gzip", "x-gzip"}:
            raise httpx.DecodingError(f"the answer is packed as {packing[:20]!r}")
        if isinstance(response.stream, httpx.SyncByteStream):
            is_log = self.tail_bytes > 0 and response.is_success
            response.stream = _BoundedStream(response.stream, self, packing != "identity", is_log)

    def check(self) -> None:
        """Raise `TooMuchError` if the time is over."""
        if time.monotonic() >= self._ends_at:
            raise TooMuchError(f"no whole answer within {self.seconds:.0f} s")

    def whole(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the parts of an answer; raise `TooMuchError` if this answer, or the sum of all, is too large."""
        size = 0
        for piece in pieces:
            size += len(piece)
            self._left_bytes -= len(piece)
            if size > MOST_BYTES or self._left_bytes < 0:
                most = MOST_BYTES if size > MOST_BYTES else MOST_BYTES_IN_ALL
                raise TooMuchError(f"the answer has more than {most >> 20} MiB")
            yield piece

    def end_of(self, pieces: Iterable[bytes]) -> bytes:
        """Return the last `tail_bytes` of a log; no more of the log is in memory."""
        end, size = b"", 0
        for piece in pieces:
            end, size = (end + piece)[-self.tail_bytes :], size + len(piece)
            if size > MOST_LOG_BYTES:
                return end + CUT_LOG
        return end

    def _trace(self, event: str, facts: Mapping[str, Any]) -> None:
        """Remember new connections, so that the timer's thread can close one that receives nothing."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._sockets.append(facts["return_value"].get_extra_info("socket"))

    def _hang_up(self) -> None:
        for each in self._sockets:
            with suppress(OSError):
                socket.socket.shutdown(each, socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True)
class _BoundedStream(httpx.SyncByteStream):
    stream: httpx.SyncByteStream
    bounds: AnswerBounds
    is_packed: bool
    is_log: bool

    def __iter__(self) -> Iterator[bytes]:
        pieces = _unpacked(self._arriving()) if self.is_packed else self._arriving()
        if self.is_log:
            yield self.bounds.end_of(pieces)
        else:
            yield from self.bounds.whole(pieces)

    def _arriving(self) -> Iterator[bytes]:
        for piece in self.stream:
            self.bounds.check()
            yield piece
        self.bounds.check()  # a body without a length also ends if the timer closes its connection

    def close(self) -> None:
        self.stream.close()


def _unpacked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield unpacked gzip in parts of at most 64 KB, because gzip may unpack to a thousand times its size."""
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)  # 16: gzip
    try:
        for piece in pieces:
            rest = piece
            while rest:
                yield unpacker.decompress(rest, 64 * 1024)
                rest = unpacker.unconsumed_tail
            if unpacker.eof:
                return
        yield unpacker.flush()
    except zlib.error as error:
        raise httpx.DecodingError(f"the answer cannot be unpacked: {error}") from error


@cache
def trusted_authorities() -> ssl.SSLContext:
    """Return the certificate authorities that the machine trusts; they are read once, because reading is slow."""
    return httpx.create_ssl_context()
