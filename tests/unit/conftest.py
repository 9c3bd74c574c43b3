"""Fixtures for the tests of several folders."""

from pathlib import Path

import pytest
from fakes.repositories import git_env

from septet.state import StateDir


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return git_env(tmp_path / "home")


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    state = StateDir(tmp_path / "state")
    state.prepare()
    return state
