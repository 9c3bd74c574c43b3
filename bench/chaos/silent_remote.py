"""A remote that accepts and never answers, for work orders that hang on it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class SilentRemote:
    """Listens on loopback, and never answers."""

    address: str = ""
    """The address as host:port."""
    _connections: list[asyncio.StreamWriter] = field(default_factory=list)

    def url(self, name: str) -> str:
        """Return the address of a repository on the remote."""
        return f"http://{self.address}/o/{name}"

    async def accept(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Keep a connection open without an answer."""
        self._connections.append(writer)

    def close(self) -> None:
        """Close the kept connections."""
        for writer in self._connections:
            writer.close()


@asynccontextmanager
async def silent_remote() -> AsyncIterator[SilentRemote]:
    """Listen during the block."""
    remote = SilentRemote()
    server = await asyncio.start_server(remote.accept, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    remote.address = f"{host}:{port}"
    try:
        yield remote
    finally:
        server.close()
        remote.close()
