"""What belongs to one request: what a guest sends behind its end is not passed on.

A server that keeps the connection would take it for another request, whose head nobody has changed.
"""

import re

from septet.agents.proxy.request_head import END_OF_LINE, RequestHead

LENGTH = re.compile(rb"[0-9]{1,18}")
CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[^\r\n\0]*)?")
LONGEST_LINE = 1 << 14
"""Of a chunk's size or a trailer, in bytes."""
SWITCHED = b"HTTP/1.1 101 "


class RequestBody:
    """The body of one request, and what is sent once the host speaks another protocol."""

    def __init__(self, request: RequestHead) -> None:
        """Read from its head how long the body is.

        Raises:
            ValueError: Servers could read its length in two ways.
        """
        lengths, codings = request.values(b"content-length"), request.values(b"transfer-encoding")
        is_clear = len(lengths) + len(codings) <= 1 and all(map(LENGTH.fullmatch, lengths))
        if not is_clear or any(coding.lower() != b"chunked" for coding in codings):
            raise ValueError("The length of the request's body is not clear.")
        self.left = int(lengths[0]) if lengths else 0
        """Bytes that are still to come, of the body or of a chunk."""
        self.is_chunked = bool(codings)
        self.is_behind_chunk = self.is_in_trailer = False
        self.pending = b""
        self.may_switch = is_upgrade(request)
        self.answer = b""
        """How the host's answer begins."""
        self.has_switched = False

    def take(self, data: bytes) -> tuple[bytes, bool]:
        """Return what is passed on of these bytes of the guest's, and whether there was more than that.

        Raises:
            ValueError: They are no chunks.
        """
        if self.has_switched:
            return data, False
        if self.is_chunked:
            return self.take_chunks(data)
        part = data[: self.left]
        self.left -= len(part)
        return part, len(part) < len(data)

    def take_chunks(self, data: bytes) -> tuple[bytes, bool]:
        """Return chunks in their plain form: without extensions and trailers."""
        self.pending += data
        taken = b""
        while self.is_chunked:
            if self.left:
                part = self.pending[: self.left]
                self.pending = self.pending[len(part) :]
                self.left -= len(part)
                self.is_behind_chunk = not self.left
                taken += part
                if self.left:
                    break
            line, end, behind = self.pending.partition(END_OF_LINE)
            if not end:
                if len(line) > LONGEST_LINE:
                    raise ValueError("A line between the chunks is too long.")
                break
            self.pending = behind
            taken += self.take_line(line)
        return taken, not self.is_chunked and bool(self.pending)

    def take_line(self, line: bytes) -> bytes:
        """Return what is passed on of a line between chunks."""
        if self.is_in_trailer:
            self.is_chunked = bool(line)
            return b"" if line else END_OF_LINE
        if self.is_behind_chunk:
            if line:
                raise ValueError("A chunk is longer than it says.")
            self.is_behind_chunk = False
            return END_OF_LINE
        size = CHUNK.fullmatch(line)
        if size is None:
            raise ValueError("A chunk does not say how long it is.")
        self.left = int(size[1], 16)
        self.is_in_trailer = not self.left
        return b"%x\r\n" % self.left

    def hear(self, data: bytes) -> None:
        """Look at what the host answers: once it has switched to web sockets, it takes no further request."""
        if len(self.answer) < len(SWITCHED):
            self.answer += data[: len(SWITCHED)]
            self.has_switched = self.may_switch and self.answer.startswith(SWITCHED)


def is_upgrade(request: RequestHead) -> bool:
    """Return whether a request asks for web sockets; no other protocol is known to have no hosts of its own."""
    return [value.lower() for value in request.values(b"upgrade")] == [b"websocket"]
