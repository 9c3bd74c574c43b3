"""The search of a client for its server, and the errors without a server."""

import os
from pathlib import Path

import pytest
from fakes.septet_command import free_ports

from septet.errors import ServerNotReachedError, UsageError
from septet.settings import Settings
from septet.state import StateDir
from workers.connection.connection import connect, refuse_foreign_server
from workers.server.ports import Ports, state_dir_of
from workers.server.server import embedded_server


@pytest.mark.parametrize(
    "address",
    ["nonsense", ":", ":7233", "[::1", "::1", "127.0.0.1:", "127.0.0.1:99999", "h:0", "http://h:7233", "a b:1"],
)
async def test_an_address_that_is_none_is_told_in_words(address: str, tmp_path: Path) -> None:
    """A text that is no address is refused before a connection, and the remedy shows the right form."""
    with pytest.raises(UsageError) as caught:
        await connect(Settings(state_dir=tmp_path), address=address)
    assert caught.value.message == f"{address} is not the address of a Temporal server (--address)."
    assert caught.value.remedy == "Write it as HOST:PORT, for example 127.0.0.1:7233."


async def test_a_server_of_another_state_directory_is_not_used_unasked(tmp_path: Path) -> None:
    """A server of another state directory is refused; the error names its owner and the remedy two ways."""
    state = StateDir(tmp_path / "theirs")
    async with embedded_server(state, Ports(*free_ports(2)), {"PATH": os.environ["PATH"]}, config=None) as server:
        assert state_dir_of(server.address) == state.root
        refuse_foreign_server(server.address, state.root)
        with pytest.raises(ServerNotReachedError) as caught:
            refuse_foreign_server(server.address, tmp_path / "mine")
    message = f"No server of {tmp_path / 'mine'} is running; the one at {server.address} belongs to {state.root}."
    assert caught.value.message == message
    assert f"--address {server.address}, or SEPTET_STATE_DIR={state.root}" in caught.value.remedy
    assert state_dir_of(server.address) is None
