from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.newcomer import Newcomer, newcomer_at
from fakes.septet_command import Septet


@pytest.fixture(scope="session")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    """A machine on which a person has typed `septet up`, and reads its output."""
    with newcomer_at(tmp_path_factory.mktemp("newcomer")) as newcomer:
        yield newcomer


@pytest.fixture
def septet(tmp_path: Path) -> Septet:
    """A machine without a running process."""
    return Septet(tmp_path / "machine")
