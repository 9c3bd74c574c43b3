"""Serve the API and Temporal's web UI during a block, each on its own port."""

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

from clients.http.app import ApiChoices, api_of
from clients.http.temporal_ui import CodecEndpoint, UiRelay, Visitors, codec_key, relay_client
from clients.operations.operations import Operations
from clients.page.key import LOOPBACK, api_token, new_page_key, page_host, page_link
from septet.contracts.seal import CODEC_PATH
from septet.errors import UsageError
from septet.settings import Settings
from septet.state import StateDir
from septet.system.masking import hide, reveal
from workers.connection.payload_codec import SealingCodec, codec_of
from workers.server.ports import UiAddress

_LOOPBACK_6: Final = "::1"


@dataclass(frozen=True, slots=True)
class Door:
    """The address and port at which a server listens, and the option that sets the port."""

    port: int
    option: str
    host: str = LOOPBACK
    """The address to listen at. An address other than loopback is for a container whose port is published on the
    machine's loopback, where clients call the API."""

    @property
    def is_open_to_others(self) -> bool:
        """Whether other machines may reach the server."""
        return not self.host.startswith("127.")


@dataclass(frozen=True, slots=True)
class ServedApi:
    """The addresses of a running API, the check of browsers' cookies, and the codec for sealed payloads."""

    address: str
    page: str
    """The link that opens the page in a browser; the link contains the page's key, if there is a token."""
    visitors: Visitors
    codec: SealingCodec | None = None
    """The codec of the codec endpoint, if payloads are sealed."""
    codec_address: str = ""
    """The codec endpoint's address, with a key, for pages of other sites; empty if the settings name no site."""


class _Server(uvicorn.Server):
    """A server that handles no signals, and reports when it is ready."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections, and set `ready`."""
        await super().startup(sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals: the command that runs the server handles them."""
        yield


@asynccontextmanager
async def serve_api(operations: Operations, settings: Settings, door: Door) -> AsyncIterator[ServedApi]:
    """Serve the API on a port during the block, and yield its addresses; open streams end with the block.

    Raises:
        UsageError: The port is taken; or other machines can reach the API, and no token protects it.
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
        codec_parts = (address + CODEC_PATH, token and codec_key(token)) if is_for_pages else ()
        codec_address = "/".join(filter(None, codec_parts))
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
    """Serve the embedded server's web UI to browsers that have opened the page; `codec` decrypts for the UI.

    Raises:
        UsageError: The port is taken; the remedy names the option.
    """
    async with relay_client(ui.host, ui.port) as client, _serve_app(UiRelay(client, visitors, codec), door):
        yield


@asynccontextmanager
async def _serve_app(app: ASGIApp, door: Door) -> AsyncIterator[None]:
    """Serve an application at the address and port of `door` during the block."""
    with _listen(door) as listeners:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=1,
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
    """Return whether to log `record`; false if it only reports a request that was cut off as the server ended."""
    is_cut = record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)
    return not is_cut and not str(record.msg).startswith("Cancel %s running task")


@contextmanager
def _listen(door: Door) -> Iterator[list[socket.socket]]:
    """Yield sockets that listen at `door`; on loopback, also by IPv6, which browsers try first.

    If another user listened by IPv6, a browser would send the page's key to that user.
    """
    with ExitStack() as stack:
        listeners = [stack.enter_context(_listener(socket.AF_INET, door.host, door))]
        if door.host == LOOPBACK and _has_ipv6():
            listeners.append(stack.enter_context(_listener(socket.AF_INET6, _LOOPBACK_6, door)))
        yield listeners


def _has_ipv6() -> bool:
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
        listener.listen(512)
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
