"""Real agent CLIs in `SEPTET_AGENTS_CACHE` with a model on loopback; without the variable no test is collected here."""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

import pytest
from fakes.day_host import serving_day
from fakes.model_day import CLIS, Day, day_of

from clients.temporal.work_orders import WorkOrders

_AGENTS: Final = Path(__file__).parents[2] / "scripts" / "agents"

collect_ignore_glob = [] if os.environ.get("SEPTET_AGENTS_CACHE") else ["test_*.py"]


@pytest.fixture(scope="session")
def programs() -> dict[str, str]:
    """Return the installed programs by variable; a missing program fails the tests of its CLI."""
    told = subprocess.run([sys.executable, str(_AGENTS), "env"], capture_output=True, text=True, check=True)
    return dict(line.split("=", 1) for line in told.stdout.splitlines())


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(params=CLIS)
def cli(request: pytest.FixtureRequest, programs: dict[str, str]) -> str:
    name: str = request.param
    assert f"SEPTET_{name.upper()}_PATH" in programs, f"{name} is not installed: scripts/agents install {name}"
    return name


@pytest.fixture
def day(cli: str, programs: dict[str, str], homes: Path, tmp_path: Path) -> Day:
    """Return a day of work for a CLI; a test adds its faults before the day begins."""
    home = homes / cli
    home.mkdir(exist_ok=True)
    return day_of(cli, programs, home, tmp_path)


@pytest.fixture
def begun() -> Callable[[Day], AbstractAsyncContextManager[WorkOrders]]:
    return serving_day
