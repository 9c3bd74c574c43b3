"""The API on a port of loopback, for as long as a block lasts."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import uvicorn

from clients.api_token import api_token
from clients.http.app import api_of
from clients.operations import Operations
from septet.errors import UsageError
from septet.settings import Settings

_STREAMS_END_WITHIN_SECONDS: Final = 1
_BACKLOG: Final = 512


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
async def serve_api(operations: Operations, settings: Settings, port: int, option: str) -> AsyncIterator[str]:
    """Serve the API on a port, and give its address; streams that are open at the end are cut off.

    Raises:
        UsageError: The port is taken; the remedy names the option.
    """
    with _listen(port, option) as listener:
        config = uvicorn.Config(
            api_of(operations, api_token(settings), settings.temporal_ui_url),
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
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            await task


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
