"""A host with the parts of a worker, and one work order on a repository with a small bug."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from fakes.repositories import Origin, copy_origin, make_origin
from fakes.step_lab import StepLab, step_lab


@pytest.fixture
def origin(tmp_path: Path, first_origin: Origin) -> Origin:
    """Return an origin whose one program has a small bug."""
    return copy_origin(first_origin, tmp_path / "origins")


@pytest.fixture(scope="session")
def first_origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    origin = make_origin(tmp_path_factory.mktemp("origins"))
    origin.push({"src/app.py": "def total(prices):\n    return 0\n", ".gitignore": "*.log\n"})
    return origin


@pytest_asyncio.fixture
async def lab(tmp_path: Path, origin: Origin) -> AsyncIterator[StepLab]:
    async with step_lab(tmp_path, origin) as made:
        yield made
