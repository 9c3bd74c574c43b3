"""An origin, a state directory and an open workspace."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.repositories import Origin, copy_origin, make_origin

from septet.git.engine.address import parse_address
from septet.git.engine.place import Place
from septet.git.workspace.workspace import OrderStart, open_workspace
from septet.state import StateDir

Open = Callable[..., Place]


@pytest.fixture
def origin(tmp_path: Path, first_origin: Origin) -> Origin:
    return copy_origin(first_origin, tmp_path / "origins")


@pytest.fixture(scope="session")
def first_origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    origin = make_origin(tmp_path_factory.mktemp("origins"))
    origin.push({"README.md": "# Sample\n", "src/app.py": "print('hello')\n" * 20, ".gitignore": "*.log\ndist/\n"})
    return origin


@pytest.fixture
def open_place(state: StateDir, env: dict[str, str], origin: Origin) -> Open:
    def open_it(order_id: str = "wo-1", *, of: Origin | None = None, base: str | None = None) -> Place:
        address = parse_address(str((of or origin).bare))
        return open_workspace(state, address, OrderStart(order_id, f"run of {order_id}", base), env=env)

    return open_it


@pytest.fixture
def place(open_place: Open) -> Place:
    return open_place()
