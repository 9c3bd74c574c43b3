"""How a client finds its server, and what it says when there is none."""

import asyncio
from pathlib import Path

import pytest
from fakes.septet_command import free_port

from septet.errors import ServerNotReachedError, UsageError
from septet.settings import Settings
from workers.connection import connect


def test_a_server_that_is_not_there_is_told_in_plain_words(tmp_path: Path) -> None:
    """The message names address and cause, and nothing of how the client is built."""
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(ServerNotReachedError) as caught:
        asyncio.run(connect(Settings(state_dir=tmp_path), address=address))
    assert caught.value.message == f"No Temporal server answers at {address} (--address): Connection refused."


@pytest.mark.parametrize(
    "address",
    ["nonsense", ":", ":7233", "[::1", "::1", "127.0.0.1:", "127.0.0.1:99999", "h:0", "http://h:7233", "a b:1"],
)
async def test_an_address_that_is_none_is_told_in_words(address: str, tmp_path: Path) -> None:
    """What cannot be the address of a server is refused before anybody is asked, with the form that it should have."""
    with pytest.raises(UsageError) as caught:
        await connect(Settings(state_dir=tmp_path), address=address)
    assert caught.value.message == f"{address} is not the address of a Temporal server (--address)."
    assert caught.value.remedy == "Write it as HOST:PORT, for example 127.0.0.1:7233."
