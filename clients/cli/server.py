"""The server that a command calls."""

from dataclasses import dataclass
from typing import Final

from cyclopts import Parameter

from clients.cli.options import Address, Json
from clients.operations.operations import Operations, connect_operations
from septet.settings import load_settings


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The server that a command calls, and the form of its answer: the last options of such a command."""

    address: Address = None
    as_json: Json = False

    async def connect(self) -> Operations:
        """Connect to the server, and return its operations.

        Raises:
            ServerNotReachedError: No server answers.
        """
        return await connect_operations(load_settings(), self.address)


SERVER: Final = Server()
