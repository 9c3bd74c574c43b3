"""Servers in a forge's place that answer too much: bombs, endless bodies, and slow drops."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from typing import Final, Literal

from fakes.listening import QuietHandler, listening

Flood = Literal["bomb", "endless", "packed", "drip", "head", "log"]
MIB: Final = 1024 * 1024
_BOMB_MIB: Final = 64
_DROP_SECONDS: Final = 0.05
LOG_END: Final = b"\nassert 1 == 2\n"


@dataclass
class FloodingForge:
    """The kind of answer, and the number of bytes that the client took."""

    flood: Flood
    url: str = ""
    sent_bytes: int = 0
    ranges: list[str | None] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


@cache
def bomb() -> bytes:
    """Return 64 MiB of JSON, compressed to about as many KiB."""
    packed = BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as file:
        file.write(b"[")
        for _ in range(_BOMB_MIB):
            file.write(b" " * MIB)
        file.write(b"]")
    return packed.getvalue()


@contextmanager
def flooding_forge(flood: Flood) -> Iterator[FloodingForge]:
    forge = FloodingForge(flood)

    class Handler(QuietHandler):
        def handle_any(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            forge.ranges.append(self.headers.get("Range"))
            self.close_connection = True
            with suppress(OSError):
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n")
                for piece in _pieces(forge):
                    self.wfile.write(piece)
                    self.wfile.flush()
                    forge.sent_bytes += len(piece)

    with listening(Handler) as forge.url:
        try:
            yield forge
        finally:
            forge.over.set()


def _pieces(forge: FloodingForge) -> Iterator[bytes]:
    match forge.flood:
        case "bomb":
            yield b"Content-Encoding: gzip\r\n\r\n" + bomb()
        case "packed":
            yield b"Content-Encoding: zstd\r\n\r\n"
        case "endless":
            yield b"Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\n"
            while not forge.over.is_set():
                yield b"100000\r\n" + b" " * MIB + b"\r\n"
        case "drip":
            yield b"\r\n["
            while not forge.over.wait(_DROP_SECONDS):
                yield b" "
        case "head":
            while not forge.over.wait(_DROP_SECONDS):
                yield b"X-More: and more\r\n"[: 1 + forge.sent_bytes % 17]
        case "log":
            yield from (b"\r\n", *[b"x" * MIB] * 100, LOG_END)
