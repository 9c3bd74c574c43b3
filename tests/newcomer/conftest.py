from collections.abc import Iterator

import pytest
from fakes.newcomer import Newcomer, newcomer_at


@pytest.fixture(scope="session")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    with newcomer_at(tmp_path_factory.mktemp("newcomer")) as newcomer:
        yield newcomer
