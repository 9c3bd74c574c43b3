"""A scripted agent with a folder and a home."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.scripted_agent import ScriptedAgent


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[ScriptedAgent]:
    """Return an agent, and restore the signal handler of this process after the test."""
    folder, home = tmp_path / "wo-7", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    before = signal.getsignal(signal.SIGTERM)
    yield ScriptedAgent(folder, home)
    signal.signal(signal.SIGTERM, before)
