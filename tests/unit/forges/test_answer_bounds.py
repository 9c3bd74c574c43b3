"""Bounds on the answers of every forge and tracker, against servers that send too much or too slowly."""

import gzip
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from typing import Final, Literal

import pytest
from fakes.listening import QuietHandler, listening

from septet.errors import ForgeUnavailableError, TrackerUnavailableError
from septet.forges.answers import Foreign
from septet.forges.gitea.forge import GiteaForge, gitea_api
from septet.forges.github.forge import GitHubForge, github_api
from septet.forges.gitlab.forge import GitLabForge, gitlab_api
from septet.forges.http.api import HttpApi
from septet.forges.limits import LOG_LIMIT, LOG_TAIL_BYTES
from septet.forges.values import CommitCheck
from septet.trackers.linear.api import LinearApi

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


Ask = Callable[[str], object]
MOST_MEMORY = 96 * MIB


def _ask_app(url: str) -> object:
    with HttpApi("GitHub", url).asking("an installation") as client:
        return client.get(dict[str, object], "")


ASKS: dict[str, Ask] = {
    "github": lambda url: GitHubForge("o/r", github_api(url)).issue(1),
    "gitlab": lambda url: GitLabForge("o/r", gitlab_api(url)).issue(1),
    "gitea": lambda url: GiteaForge("o/r", gitea_api(url)).issue(1),
    "github-list": lambda url: GitHubForge("o/r", github_api(url)).open_issues("septet"),
    "app": _ask_app,
    "linear": lambda url: LinearApi("key", url).ask("an issue", "query { viewer { id } }", {}, Foreign),
}


@pytest.mark.parametrize("name", ASKS)
@pytest.mark.parametrize("flood", ["bomb", "endless", "packed"])
def test_an_answer_takes_no_more_memory_than_its_bound(name: str, flood: Flood) -> None:
    """The client refuses a gzip bomb, an endless body and an unknown packing before they fill its memory."""
    with flooding_forge(flood) as forge:
        tracemalloc.start()
        try:
            with pytest.raises((ForgeUnavailableError, TrackerUnavailableError)) as refused:
                ASKS[name](forge.url)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < MOST_MEMORY
        assert forge.sent_bytes < MOST_MEMORY
    assert ("packed as" if flood == "packed" else "more than 16 MiB") in refused.value.message


@pytest.mark.parametrize("flood", ["drip", "head"])
def test_an_answer_that_drips_ends_with_the_time(flood: Flood) -> None:
    """A request ends after its time limit even if each piece of the head or body arrives in time."""
    with flooding_forge(flood) as forge:
        for api in (github_api(forge.url), gitea_api(forge.url)):
            with (
                pytest.raises(ForgeUnavailableError, match="no whole answer within 1 s"),
                api.asking("GET /", within_seconds=1) as client,
            ):
                client.send("GET", "/")


def _github_log(forge: FloodingForge) -> str:
    return (
        GitHubForge("o/r", github_api(forge.url)).conversation(1).check_log(CommitCheck("test", "failure", id="1"))
    )


def _gitlab_log(forge: FloodingForge) -> str:
    return (
        GitLabForge("o/r", gitlab_api(forge.url)).conversation(1).check_log(CommitCheck("test", "failure", id="1"))
    )


@pytest.mark.parametrize("ask", [_github_log, _gitlab_log])
def test_of_a_long_log_the_end_is_read_and_nothing_else_kept(ask: Callable[[FloodingForge], str]) -> None:
    """The client keeps only the end of a log of 100 MiB in memory."""
    with flooding_forge("log") as forge:
        tracemalloc.start()
        try:
            log = ask(forge)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert log.endswith(LOG_END.decode())
        assert len(log) == LOG_LIMIT
        assert peak < 32 * MIB
        assert forge.sent_bytes > 100 * MIB
        assert forge.ranges in ([None], [f"bytes=-{LOG_TAIL_BYTES}"])


def test_a_log_without_an_end_is_read_up_to_its_bound() -> None:
    """The client stops reading an endless log after 256 MiB, and the text of the log says so."""
    with flooding_forge("endless") as forge:
        assert "The log goes on" in _github_log(forge)
        assert forge.sent_bytes < 300 * MIB
