"""The API, and Temporal's web UI, each on a port of loopback for as long as a block lasts."""

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from clients.api_token import api_token
from clients.http.app import ApiChoices, api_of
from clients.http.codec import CodecEndpoint, codec_key
from clients.http.ui_relay import UiRelay, Visitors, relay_client
from clients.operations.operations import Operations
from clients.page.key import LOOPBACK, new_page_key, page_host, page_link
from septet.contracts.seal import CODEC_PATH
from septet.errors import UsageError
from septet.settings import Settings
from septet.state import StateDir
from septet.system.masking import hide, reveal
from workers.connection.payload_codec import SealingCodec, codec_of
from workers.server.ports import UiAddress

_STREAMS_END_WITHIN_SECONDS: Final = 1
_BACKLOG: Final = 512
_LOOPBACK_6: Final = "::1"


@dataclass(frozen=True, slots=True)
class Door:
    """Where to listen."""

    port: int
    option: str
    """The option that names another port."""
    host: str = LOOPBACK
    """Another one is for a container whose port is published on loopback, the name by which the API is called."""

    @property
    def is_open_to_others(self) -> bool:
        """Whether other machines may reach it."""
        return not self.host.startswith("127.")


@dataclass(frozen=True, slots=True)
class ServedApi:
    """Where the API is served."""

    address: str
    page: str
    """The link that opens the page in a browser: it holds a key, which is new with each start."""
    visitors: Visitors
    """The browsers that have opened the page."""
    codec: SealingCodec | None = None
    """The codec of the codec endpoint, if payloads are sealed."""
    codec_address: str = ""
    """The codec endpoint's address for a web UI of another site, with its key; empty if no site is named."""


class _Server(uvicorn.Server):
    """A server that leaves signals to the command of its process, and reports when it is ready."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept."""
        await super().startup(sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


@asynccontextmanager
async def serve_api(operations: Operations, settings: Settings, door: Door) -> AsyncIterator[ServedApi]:
    """Serve the API on a port, and yield its address; streams that are open at the end are cut off.

    Raises:
        UsageError: The port is taken; the remedy names the option. Or others would be let in without a token.
    """
    token = api_token(settings)
    if token is None and door.is_open_to_others:
        raise UsageError(
            f"SEPTET_API_TOKEN=none lets in every machine that can reach {door.host}.",
            remedy="Leave SEPTET_API_TOKEN out, or serve the API on 127.0.0.1.",
        )
    state = StateDir(settings.state_dir)
    key = None if token is None else new_page_key() if door.is_open_to_others else state.page_key()
    hide(filter(None, (token, key)))
    try:
        choices = ApiChoices(settings.temporal_ui_url, key, settings.user, settings.webhook_secrets)
        app = api_of(operations, token, choices)
        codec = codec_of(settings)
        served = app if codec is None else CodecEndpoint(app, codec, token, settings.codec_origins)
        address = f"http://127.0.0.1:{door.port}"
        is_for_pages = codec is not None and settings.codec_origins
        codec_address = (
            "/".join(filter(None, (address + CODEC_PATH, token and codec_key(token)))) if is_for_pages else ""
        )
        host = LOOPBACK if door.is_open_to_others else page_host(token)
        async with _serve_app(served, door):
            page = page_link(f"http://{host}:{door.port}", key)
            yield ServedApi(address, page, Visitors(door.port, key), codec, codec_address)
    finally:
        reveal(filter(None, (key,)))


@asynccontextmanager
async def serve_ui(
    ui: UiAddress, visitors: Visitors, door: Door, codec: SealingCodec | None = None
) -> AsyncIterator[None]:
    """Serve the embedded server's web UI, for those who have opened the page; a codec lets it show clear text.

    Raises:
        UsageError: The port is taken; the remedy names the option.
    """
    async with relay_client(ui.host, ui.port) as client, _serve_app(UiRelay(client, visitors, codec), door):
        yield


@asynccontextmanager
async def _serve_app(app: ASGIApp, door: Door) -> AsyncIterator[None]:
    """Serve an application for as long as the block lasts."""
    with _listen(door) as listeners:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=_STREAMS_END_WITHIN_SECONDS,
        )
        server = _Server(config)
        task = asyncio.create_task(server.serve(sockets=listeners))
        try:
            await server.ready.wait()
            yield
        finally:
            server.should_exit = True
            logging.getLogger("uvicorn.error").addFilter(_is_no_cut)
            await task


def _is_no_cut(record: logging.LogRecord) -> bool:
    """Return whether a record reports more than the intended cut of an open page at the end."""
    is_cut = record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)
    return not is_cut and not str(record.msg).startswith("Cancel %s running task")


@contextmanager
def _listen(door: Door) -> Iterator[list[socket.socket]]:
    """Listen at a door; at that of loopback also by IPv6, where browsers look for the page's name first.

    Another user who listened there would be sent the page's key.

    Raises:
        UsageError: It is taken, or is none of this machine's.
    """
    with ExitStack() as stack:
        listeners = [stack.enter_context(_listener(socket.AF_INET, door.host, door))]
        if door.host == LOOPBACK and _has_ipv6():
            listeners.append(stack.enter_context(_listener(socket.AF_INET6, _LOOPBACK_6, door)))
        yield listeners


def _has_ipv6() -> bool:
    """Return whether this machine has the loopback of IPv6."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind((_LOOPBACK_6, 0))
    except OSError:
        return False
    return True


def _listener(family: socket.AddressFamily, host: str, door: Door) -> socket.socket:
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, door.port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            remedy = f"Name another one with {door.option}."
            raise UsageError(f"Port {door.port} of {host} is taken.", remedy=remedy) from error
        raise UsageError(
            f"Cannot listen on {host}, port {door.port}: {error.strerror}.",
            remedy="Name an IPv4 address of this machine with --host, and a port that you may use.",
        ) from error
    return listener
