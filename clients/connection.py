"""A connection that survives a move of the server, for programs that serve for hours."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from temporalio.service import RPCError

from clients.operations import Operations, connect_operations
from septet.errors import ServerNotReachedError
from septet.settings import Settings
from workers.connection.connection import server_address

OperationsContext = Callable[[], AbstractAsyncContextManager[Operations]]
"""Gives what can be done with work orders, for as long as a block lasts."""


@asynccontextmanager
async def lend(operations: Operations) -> AsyncIterator[Operations]:
    """Give operations that are connected, for as long as the block lasts.

    Raises:
        ServerNotReachedError: Nobody answers them any more.
    """
    try:
        yield operations
    except RPCError as error:
        raise ServerNotReachedError(f"The Temporal server did not answer: {error.message}.") from error


@dataclass(slots=True)
class Connection:
    """Operations on the server of the settings: connected when they are needed, and anew where it moved."""

    settings: Settings
    address: str | None = None
    _operations: Operations | None = None
    _connected_to: str | None = None

    @asynccontextmanager
    async def operations(self) -> AsyncIterator[Operations]:
        """Give what can be done with work orders, for as long as the block lasts.

        Raises:
            ServerNotReachedError: Nobody answers, or no more.
        """
        try:
            async with lend(await self._connect()) as operations:
                yield operations
        except ServerNotReachedError:
            self._operations = None
            raise

    async def _connect(self) -> Operations:
        where = server_address(self.settings, self.address)
        if self._operations is None or where != self._connected_to:
            self._operations, self._connected_to = await connect_operations(self.settings, self.address), where
        return self._operations
