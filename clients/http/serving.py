"""The API on a port of loopback, for as long as a block lasts."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final

import uvicorn

from clients.api_token import api_token
from clients.http.app import api_of
from clients.operations import Operations
from clients.page.key import new_page_key, page_link
from septet.errors import UsageError
from septet.settings import Settings
from septet.system.masking import hide, reveal

_STREAMS_END_WITHIN_SECONDS: Final = 1
_BACKLOG: Final = 512


@dataclass(frozen=True, slots=True)
class ServedApi:
    """Where the API is served."""

    address: str
    page: str
    """The link that opens the page in a browser: it holds a key, which is new with each start."""


class _ApiServer(uvicorn.Server):
    """A server that leaves signals to the command in whose process it is, and says when it is ready."""

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
async def serve_api(
    operations: Operations, settings: Settings, port: int, option: str
) -> AsyncIterator[ServedApi]:
    """Serve the API on a port, and tell where; streams that are open at the end are cut off.

    Raises:
        UsageError: The port is taken; the remedy names the option.
    """
    token = api_token(settings)
    key = new_page_key() if token is not None else None
    hide(filter(None, (token, key)))
    with _listen(port, option) as listener:
        config = uvicorn.Config(
            api_of(operations, token, settings.temporal_ui_url, key, settings.user),
            log_config=None,
            access_log=False,
            server_header=False,
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=_STREAMS_END_WITHIN_SECONDS,
        )
        server = _ApiServer(config)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            await server.ready.wait()
            address = f"http://127.0.0.1:{port}"
            yield ServedApi(address, page_link(address, key))
        finally:
            server.should_exit = True
            await task
            reveal(filter(None, (key,)))


@contextmanager
def _listen(port: int, option: str) -> Iterator[socket.socket]:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen(_BACKLOG)
        except OSError as error:
            remedy = f"Name another one with {option}."
            raise UsageError(f"Port {port} of 127.0.0.1 is taken.", remedy=remedy) from error
        yield listener
