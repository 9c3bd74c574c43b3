"""A remote that accepts and never answers, and the work orders that hang on it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class SilentRemote:
    """Listens on loopback, and never says a word."""

    address: str = ""
    """Host and port."""
    _connections: list[asyncio.StreamWriter] = field(default_factory=list)

    def url(self, name: str) -> str:
        """Return the address of a repository there."""
        return f"http://{self.address}/o/{name}"

    async def accept(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Keep a connection, as it is."""
        self._connections.append(writer)

    def close(self) -> None:
        """Close what was kept."""
        for writer in self._connections:
            writer.close()


@asynccontextmanager
async def silent_remote() -> AsyncIterator[SilentRemote]:
    """Listen for as long as the block lasts."""
    remote = SilentRemote()
    server = await asyncio.start_server(remote.accept, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    remote.address = f"{host}:{port}"
    try:
        yield remote
    finally:
        server.close()
        remote.close()
