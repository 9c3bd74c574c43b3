"""The state directories of demos."""

import os
from pathlib import Path

from clients.cli.start.demo import remove_earlier_demos
from septet.system.durable import take_lock
from workers.server.server import SERVER_LOCK


def test_a_demo_removes_the_state_of_earlier_ones_that_no_server_uses(tmp_path: Path) -> None:
    """A running server's state stays, and so does the state of a server that has not begun."""
    for name in ("over", "shown", "beginning"):
        (tmp_path / name).mkdir()
    (tmp_path / "over" / SERVER_LOCK).touch()
    held = take_lock(tmp_path / "shown" / SERVER_LOCK)
    assert held is not None
    remove_earlier_demos(tmp_path)
    os.close(held)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["beginning", "shown"]
