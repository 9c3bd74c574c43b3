"""One `septet up` that most tests share, and a separate machine for tests that stop it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from fakes.browser import WITHIN_MS, chromium, tab_of
from fakes.compiled_scanner import lend_scanner, shared_scanner
from fakes.mcp_client import Tools, tools_of
from fakes.repositories import Origin, make_origin
from fakes.septet_command import Septet
from fakes.shared_server import Host
from playwright.sync_api import Browser, Page, expect

from septet.state import StateDir

FILES = {"README.md": "# app\n", "app.py": "print('hello')\n", "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n"}


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Septet]:
    """A machine on which `septet up` runs for the whole session."""
    septet = Septet(tmp_path_factory.mktemp("served"))
    lend_scanner(StateDir(septet.state), shared_scanner())
    with septet.up() as running:
        septet.page = running.ready["page"]
        yield septet


@pytest.fixture(scope="session")
def done(served: Septet) -> dict[str, Any]:
    """A completed work order, which tests read and do not change."""
    origin = make_origin(served.root / "done", "app.git")
    origin.push(FILES)
    answer = served(
        "run", "--repo", origin.bare, "--title", "Say goodbye too", "--body", "The app greets only.",
        "--id", "wo-done", "--wait", "--json",
    )  # fmt: skip
    assert answer.code == 0, answer
    task: dict[str, Any] = answer.json["task"]
    return task


@pytest.fixture
def septet(tmp_path: Path) -> Septet:
    return Septet(tmp_path / "machine")


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    repository = make_origin(tmp_path, "app.git")
    repository.push(FILES)
    return repository


@pytest.fixture
def host(served: Septet, tmp_path: Path) -> Iterator[Host]:
    """A host with its own queue on the shared server; no worker runs on it yet."""
    host = Host.beside(served, tmp_path / f"host-{tmp_path.name}")
    yield host
    host.end()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=WITHIN_MS)
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, served: Septet) -> Iterator[Page]:
    """Yield a tab that has opened the link; its page requests only from its own server, and makes no errors."""
    with tab_of(browser, served) as tab:
        yield tab


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tools(served: Septet, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Tools]:
    """The tools of one `septet mcp`, which takes seconds to start, for the `septet up` that tests share."""
    begun: asyncio.Future[Tools] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def hold() -> None:  # the task that begins a client has to end it
        async with tools_of(served, tmp_path_factory.mktemp("mcp") / "mcp.log") as tools:
            begun.set_result(tools)
            await over.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(hold())
        yield await begun
        over.set()
