"""An agent with a repository-like folder and a home of its own."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.scripted_agent import ScriptedAgent


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[ScriptedAgent]:
    """Give an agent; the signal handler that it sets in this process is put back."""
    folder, home = tmp_path / "wo-7", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    before = signal.getsignal(signal.SIGTERM)
    yield ScriptedAgent(folder, home)
    signal.signal(signal.SIGTERM, before)
