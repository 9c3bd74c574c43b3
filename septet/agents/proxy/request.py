"""One HTTP request of a guest: its head and its body.

A head that servers could read in two ways is refused. Bytes after the body are not passed on, because a server
could take these bytes for another request, whose head was not checked.
"""

import re
from collections.abc import Collection, Sequence

END_OF_LINE = b"\r\n"
FOR_PROXY = b"proxy-"
LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~\x80-\xff]+) HTTP/1\.[01]")
NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
OTHER_ENDS = re.compile(rb"[\r\n\0]")
"""The bytes that end a line for some servers, and so must not be inside a line of a head."""


class RequestHead:
    """The method, the target and the fields of a request."""

    def __init__(self, head: bytes) -> None:
        """Read a head, without the empty line at its end.

        Raises:
            ValueError: The text is no head, or has a bare CR, LF or NUL, a folded field, or a space before a
                colon.
        """
        first, *lines = head.split(END_OF_LINE)
        line = LINE.fullmatch(first)
        if line is None:
            raise ValueError("This is not a request of HTTP/1.1.")
        self.method = line[1].decode("ascii")
        self.target = line[2]
        self.fields = [read_field(each) for each in lines]
        """The names in the guest's spelling, with their values."""

    def without(self, names: Collection[bytes]) -> list[tuple[bytes, bytes]]:
        """Return the fields, without fields for a proxy and without the fields `names`, given in small letters."""
        lowered = ((name.lower(), (name, value)) for name, value in self.fields)
        return [field for name, field in lowered if name not in names and not name.startswith(FOR_PROXY)]

    def values(self, name: bytes) -> list[bytes]:
        """Return the values of all fields with this name, given in small letters."""
        return [value for each, value in self.fields if each.lower() == name]


def read_field(line: bytes) -> tuple[bytes, bytes]:
    """Return the name and the value of a head's line; raise `ValueError` for an invalid line."""
    name, colon, value = line.partition(b":")
    if not colon or not NAME.fullmatch(name) or OTHER_ENDS.search(value):
        raise ValueError("A line of the request's head is not a valid field.")
    return name, value.strip(b" \t")


def write_head(method: str, target: bytes, fields: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Return the bytes of a request's head, with the empty line at the end."""
    lines = (b"%s %s HTTP/1.1" % (method.encode(), target), *(b"%s: %s" % each for each in fields))
    return END_OF_LINE.join((*lines, b"", b""))


def authority(name: str, port: int, usual_port: int) -> bytes:
    """Return a host as the field `Host` names it, without the port if it is the usual port."""
    host = f"[{name}]" if ":" in name else name
    return (host if port == usual_port else f"{host}:{port}").encode()


LENGTH = re.compile(rb"[0-9]{1,18}")
CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[^\r\n\0]*)?")
LONGEST_LINE = 1 << 14
"""The longest line of a chunk's size or a trailer, in bytes."""
SWITCHED = b"HTTP/1.1 101 "


class RequestBody:
    """The body of one request; after a switch to web sockets, all further bytes of the guest."""

    def __init__(self, request: RequestHead) -> None:
        """Read the body's length from the request's head.

        Raises:
            ValueError: Servers could read the length in two ways.
        """
        lengths, codings = request.values(b"content-length"), request.values(b"transfer-encoding")
        is_clear = len(lengths) + len(codings) <= 1 and all(map(LENGTH.fullmatch, lengths))
        if not is_clear or any(coding.lower() != b"chunked" for coding in codings):
            raise ValueError("The length of the request's body is not clear.")
        self.left = int(lengths[0]) if lengths else 0
        """The number of bytes that the body, or the present chunk, still lacks."""
        self.is_chunked = bool(codings)
        self.is_behind_chunk = self.is_in_trailer = False
        self.pending = b""
        self.may_switch = is_upgrade(request)
        self.answer = b""
        """The first bytes of the server's answer."""
        self.has_switched = False

    def take(self, data: bytes) -> tuple[bytes, bool]:
        """Return the bytes of `data` that belong to the request, and whether `data` has bytes after them."""
        if self.has_switched:
            return data, False
        if self.is_chunked:
            return self.take_chunks(data)
        part = data[: self.left]
        self.left -= len(part)
        return part, len(part) < len(data)

    def take_chunks(self, data: bytes) -> tuple[bytes, bool]:
        """Do as `take` for a body in chunks: omit extensions and trailers, and refuse invalid chunks."""
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
        """Return the bytes to send to the server for a line between two chunks."""
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
        """Read the server's answer, which may accept the switch to web sockets."""
        if len(self.answer) < len(SWITCHED):
            self.answer += data[: len(SWITCHED)]
            self.has_switched = self.may_switch and self.answer.startswith(SWITCHED)


def is_upgrade(request: RequestHead) -> bool:
    """Return whether a request is for an upgrade to web sockets; upgrades to other protocols do not count."""
    return [value.lower() for value in request.values(b"upgrade")] == [b"websocket"]
