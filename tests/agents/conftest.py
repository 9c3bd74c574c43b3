"""Real agent CLIs, with a model that answers on loopback, on a machine of their own.

`make test-agents` installs the CLIs and says where they are in `SEPTET_AGENTS_CACHE`; without it, as in `make test`,
the tests of this folder are not collected.
"""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from fakes.guest_paths import guest_paths
from fakes.model_day import CLIS, Day, day_of
from fakes.model_stub import Model, serving
from fakes.septet_command import free_ports

from clients.temporal.work_orders import WorkOrders
from septet.agents.runs.folders import Runs
from septet.agents.turns.finalize_run import end_all
from septet.forges.local import LocalForge
from septet.sample.repository import make_sample
from septet.settings import Settings
from septet.state import StateDir
from workers.connection import connect
from workers.server import Ports, embedded_server
from workers.worker import running_worker

_AGENTS: Final = Path(__file__).parents[2] / "scripts" / "agents"

collect_ignore_glob = [] if os.environ.get("SEPTET_AGENTS_CACHE") else ["test_*.py"]


@pytest.fixture(scope="session")
def programs() -> dict[str, str]:
    """By variable, the installed programs; one that is missing fails the tests of its CLI."""
    told = subprocess.run([sys.executable, str(_AGENTS), "env"], capture_output=True, text=True, check=True)
    return dict(line.split("=", 1) for line in told.stdout.splitlines())


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Homes that the tests of one CLI share: the first start in a new one takes some of them long."""
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(params=CLIS)
def cli(request: pytest.FixtureRequest, programs: dict[str, str]) -> str:
    """Each of the CLIs."""
    name: str = request.param
    assert f"SEPTET_{name.upper()}_PATH" in programs, f"{name} is not installed: scripts/agents install {name}"
    return name


@pytest.fixture
def day(cli: str, programs: dict[str, str], homes: Path, tmp_path: Path) -> Day:
    """A day of work for a CLI; a test says what goes wrong on it before it begins."""
    home = homes / cli
    home.mkdir(exist_ok=True)
    return day_of(cli, programs, home, tmp_path)


@pytest.fixture
def begun() -> Callable[[Day], AbstractAsyncContextManager[WorkOrders]]:
    """Begin a day, for as long as the block lasts."""
    return _begun


@asynccontextmanager
async def _begun(day: Day) -> AsyncIterator[WorkOrders]:
    """Serve a model, a Temporal server and a worker, and leave no agent behind."""
    model: Model = day.model
    with serving(model) as address:
        settings = Settings(
            state_dir=day.root / "state",
            agent=day.cli,
            sandbox=day.sandbox,
            sandboxed=day.sandboxed,
            guest_paths=(*guest_paths(day.root), *day.named_settings),
            environ=day.environment(address),
            log_level="error",
        )
        state = StateDir(settings.state_dir)
        state.prepare()
        sample = make_sample(
            day.root / "sample",
            lambda origin, title, body: LocalForge(origin, settings.git_env).add_issue(title, body).number,
            settings.git_env,
        )
        day.opened(sample, Runs(state.runs))
        async with embedded_server(state, Ports(*free_ports(2)), settings.git_env) as server:
            client = await connect(settings, address=server.address)
            async with running_worker(client, settings):
                try:
                    yield WorkOrders(client, settings.task_queue)
                finally:
                    for order_id in day.runs.orders():
                        await end_all(day.runs, order_id, "cancelled")
