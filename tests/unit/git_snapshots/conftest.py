"""A repository with files of many kinds, an open workspace of the repository, and its first snapshot."""

from collections.abc import Callable
from functools import partial

import pytest
from fakes.repositories import Origin, make_origin
from fakes.snapshots import begin, snapshot_of

from septet.git.engine.address import parse_address
from septet.git.engine.place import Place
from septet.git.vault.facts import Snapshot
from septet.git.workspace.workspace import OrderStart, open_workspace
from septet.state import StateDir

Open = Callable[..., Place]
Take = Callable[..., Snapshot]


@pytest.fixture(scope="session")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    """Return an origin that no test changes, with text, line endings, a binary, a program and ignore rules."""
    origin = make_origin(tmp_path_factory.mktemp("origins"))
    (origin.checkout / "link").symlink_to("README.md")
    (origin.checkout / "run.sh").write_text("#!/bin/sh\n")
    (origin.checkout / "run.sh").chmod(0o755)
    origin.push({
        "README.md": "# Sample\n",
        "src/app.py": "print('hello')\n" * 20,
        "src/deep/er/one.txt": "one\n",
        "windows.txt": "a\r\nb\r\n",
        "converted.crlf": "a\r\nb\r\n",
        "logo.bin": bytes(range(256)) * 8,
        "empty.txt": b"",
        ".gitignore": "*.log\ndist/\n",
        ".gitattributes": "*.crlf text eol=crlf\n",
    })  # fmt: skip
    return origin


@pytest.fixture
def open_place(state: StateDir, env: dict[str, str], origin: Origin) -> Open:
    """Return a function that opens and seeds a workspace of `origin` or of another origin."""

    def open_it(order_id: str = "wo-1", *, of: Origin | None = None) -> Place:
        address = parse_address(str((of or origin).bare))
        place = open_workspace(state, address, OrderStart(order_id, f"run of {order_id}"), env=env)
        begin(place)
        return place

    return open_it


@pytest.fixture
def place(open_place: Open) -> Place:
    return open_place()


@pytest.fixture
def snap(place: Place) -> Take:
    return partial(snapshot_of, place, "rescue")
