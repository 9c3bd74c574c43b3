"""The head of an HTTP request: what servers could read in two ways is refused."""

import re
from collections.abc import Collection, Sequence

END_OF_LINE = b"\r\n"
FOR_PROXY = b"proxy-"
LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~\x80-\xff]+) HTTP/1\.[01]")
NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
OTHER_ENDS = re.compile(rb"[\r\n\0]")
"""What ends a line too for some servers."""


class RequestHead:
    """A request's method, target and fields."""

    def __init__(self, head: bytes) -> None:
        """Read a head, without the empty line at its end.

        Raises:
            ValueError: It is none, or has a bare CR, LF or NUL, a folded field, or a space before a colon.
        """
        first, *lines = head.split(END_OF_LINE)
        line = LINE.fullmatch(first)
        if line is None:
            raise ValueError("This is not a request of HTTP/1.1.")
        self.method = line[1].decode("ascii")
        self.target = line[2]
        self.fields = [read_field(each) for each in lines]
        """Names as they were written, and values."""

    def without(self, names: Collection[bytes]) -> list[tuple[bytes, bytes]]:
        """Return the fields that have none of these names, in small letters, and are not for a proxy."""
        lowered = ((name.lower(), (name, value)) for name, value in self.fields)
        return [field for name, field in lowered if name not in names and not name.startswith(FOR_PROXY)]

    def values(self, name: bytes) -> list[bytes]:
        """Return the values of the fields of this name, in small letters."""
        return [value for each, value in self.fields if each.lower() == name]


def read_field(line: bytes) -> tuple[bytes, bytes]:
    """Return the name of a field, and its value.

    Raises:
        ValueError: It is none.
    """
    name, colon, value = line.partition(b":")
    if not colon or not NAME.fullmatch(name) or OTHER_ENDS.search(value):
        raise ValueError("A line of the request's head is not a valid field.")
    return name, value.strip(b" \t")


def write_head(method: str, target: bytes, fields: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Return a head with the empty line at its end."""
    lines = (b"%s %s HTTP/1.1" % (method.encode(), target), *(b"%s: %s" % each for each in fields))
    return END_OF_LINE.join((*lines, b"", b""))


def authority(name: str, port: int, usual_port: int) -> bytes:
    """Return a host as the field `Host` has it; a port that is the usual one is left out."""
    host = f"[{name}]" if ":" in name else name
    return (host if port == usual_port else f"{host}:{port}").encode()
