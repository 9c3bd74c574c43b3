"""The search of a client for its server, and the errors without a server."""

import asyncio
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread

import pytest
from fakes.septet_command import free_port, free_ports

from septet.errors import ServerNotReachedError, UsageError
from septet.settings import Settings
from septet.state import StateDir
from workers.connection.connection import connect, refuse_foreign_server
from workers.server.ports import Ports, state_dir_of
from workers.server.server import embedded_server


def test_a_server_that_is_not_there_is_told_in_plain_words(tmp_path: Path) -> None:
    """The error for a missing server names the address and the cause."""
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(ServerNotReachedError) as caught:
        asyncio.run(connect(Settings(state_dir=tmp_path), address=address))
    assert caught.value.message == f"No Temporal server answers at {address} (--address): Connection refused."


@pytest.mark.parametrize("resets", [False, True], ids=["ended", "reset"])
def test_a_server_that_closes_the_connection_is_told_alike_however_it_does(tmp_path: Path, resets: bool) -> None:
    """A server that closes the connection causes one error, and its remedy names both likely causes."""
    with closing_connections(resets=resets) as address, pytest.raises(ServerNotReachedError) as caught:
        asyncio.run(connect(Settings(state_dir=tmp_path), address=address))
    cause = "it closed the connection: it is starting or ending, or it expects TLS"
    assert caught.value.message == f"No connection to the Temporal server at {address} (--address): {cause}."
    assert caught.value.remedy.startswith("Try again if it is starting; otherwise check address, API key")


@contextmanager
def closing_connections(*, resets: bool) -> Iterator[str]:
    """Serve a port that closes or resets each connection after its first byte, and yield the address."""

    class Closing(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1)
            if resets:
                self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.request.close()

    with ThreadingTCPServer(("127.0.0.1", 0), Closing) as listening:
        thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield "{}:{}".format(*listening.server_address)
        finally:
            listening.shutdown()
            thread.join()


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
