"""The surroundings of a measurement: a state directory, the embedded server, and a worker in its own process."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from pydantic import JsonValue
from temporalio.client import Client

from bench.machine import ROOT
from septet.settings import Settings
from septet.state import StateDir
from workers.connection.connection import connect
from workers.connection.plugin import serving_options
from workers.server.ports import Ports, free_port
from workers.server.server import DYNAMIC_CONFIG, embedded_server

AGENT = Path(__file__).with_name("agent.sh")
SEPTET = Path(sys.executable).with_name("septet")
"""The command, in the environment of the bench."""
_STOP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Stage:
    """A server and a client of it."""

    settings: Settings
    client: Client
    server: psutil.Process
    metrics: str = ""
    """The address of the server's metrics."""

    @property
    def environ(self) -> dict[str, str]:
        """Return the environment of Septet's own programs on this stage."""
        own = {
            "SEPTET_STATE_DIR": str(self.settings.state_dir),
            "SEPTET_LOG_LEVEL": "error",
            "SEPTET_SCRIPTED_PATH": str(AGENT),
            "TEMPORAL_ADDRESS": self.client.service_client.config.target_host,
        }
        return {**self.settings.environ, **own}


@asynccontextmanager
async def stage(*, config: Mapping[str, JsonValue] | None = DYNAMIC_CONFIG) -> AsyncIterator[Stage]:
    """Run the embedded server with a state directory during the block; `None` runs it without settings."""
    with scratch() as folder:
        settings = Settings(state_dir=folder / "state", agent="scripted", log_level="error")
        state = StateDir(settings.state_dir)
        state.prepare()
        ports = Ports(free_port(), free_port(), metrics=free_port())
        async with embedded_server(state, ports, settings.git_env, config=config) as told:
            client = await connect(settings, address=told.address, options=serving_options)
            metrics = f"http://127.0.0.1:{ports.metrics}/metrics"
            yield Stage(settings, client, psutil.Process(told.server_pid), metrics)


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a folder during the block."""
    with tempfile.TemporaryDirectory(prefix="septet-bench-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@asynccontextmanager
async def program(argv: Sequence[str], env: dict[str, str]) -> AsyncIterator[psutil.Process]:
    """Run a program until its first line and yield its process; it ends with the block.

    Raises:
        RuntimeError: The program ended without a line.
    """
    process = subprocess.Popen(  # noqa: ASYNC220 -- it starts in a millisecond, and nothing else waits
        list(argv), cwd=ROOT, env=env, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        if process.stdout is None or not await asyncio.to_thread(process.stdout.readline):
            raise RuntimeError(f"{argv} said nothing and ended.")
        yield psutil.Process(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            await asyncio.to_thread(process.wait, _STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


@asynccontextmanager
async def worker(on: Stage, environ: dict[str, str] | None = None) -> AsyncIterator[psutil.Process]:
    """Run `septet worker` during the block."""
    async with program([str(SEPTET), "worker", "--json"], environ or on.environ) as process:
        yield process


def cpu_seconds(process: psutil.Process) -> float:
    """Return the CPU seconds of a process and of its ended children."""
    times = process.cpu_times()
    return times.user + times.system + times.children_user + times.children_system


async def own_percents(processes: Sequence[psutil.Process], seconds: float) -> list[float]:
    """Return each process's own use during this time, without children, in percent of a core."""
    before = [process.cpu_times() for process in processes]
    await asyncio.sleep(seconds)
    after = [process.cpu_times() for process in processes]
    return [
        100 * (end.user + end.system - begin.user - begin.system) / seconds
        for begin, end in zip(before, after, strict=True)
    ]
