"""The activities of a dead worker."""

import fcntl
from pathlib import Path

from temporalio.client import Client

from workers.takeover import take_over


async def test_what_a_living_worker_holds_is_not_taken(client: Client, tmp_path: Path) -> None:
    """A token that a process has locked stays where it is."""
    token = tmp_path / "a.token"
    token.write_bytes(b"of a living worker")
    with token.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert await take_over(client, tmp_path) == 0
    assert token.exists()


async def test_a_token_that_the_server_does_not_know_is_thrown_away(client: Client, tmp_path: Path) -> None:
    """Neither an old token nor one of another server keeps a worker from its start."""
    (tmp_path / "a.token").write_bytes(b"of another server")
    assert await take_over(client, tmp_path) == 0
    assert list(tmp_path.iterdir()) == []
