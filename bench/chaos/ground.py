"""The ground of a trial: a folder, bare origins, and a Temporal server and workers that can be killed."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from pydantic import JsonValue
from temporalio.client import Client
from temporalio.runtime import Runtime, TelemetryConfig

from bench.chaos.journal import Journal
from bench.chaos.plan import Plan
from bench.chaos.processes import NOBODY, Pid
from bench.chaos.silent_remote import SilentRemote, silent_remote
from bench.machine import ROOT
from bench.repository import make_repository
from bench.stage import scratch
from septet.errors import ServerNotReachedError
from septet.state import StateDir
from septet.system import processes
from workers.connection.plugin import SeptetPlugin
from workers.server.ports import Ports, free_port
from workers.server.server import DYNAMIC_CONFIG, embedded_server

_ORIGINS = 2
_TRIES = 20
_SAID_CHARACTERS = 600
_REFUSAL = b'{"ok": false'
_STOP_SECONDS = 60.0
_AGENT = '#!/bin/sh\nexec "{python}" -I -S "{program}" "$@"\n'


class Server:
    """The Temporal server, which loses nothing when it is killed."""

    def __init__(self, state: StateDir, env: Mapping[str, str], config: Mapping[str, JsonValue]) -> None:
        """Take the parts without starting; `config` is the server's dynamic configuration."""
        self._state, self._env, self._config = state, env, config
        self._ports = Ports(free_port(), free_port(), metrics=free_port())
        self._life = AsyncExitStack()
        self.up = asyncio.Event()
        self.pid = NOBODY

    @property
    def address(self) -> str:
        """Return the server's address, which stays after a kill."""
        return f"127.0.0.1:{self._ports.server}"

    @property
    def metrics(self) -> str:
        """Return the address of its metrics."""
        return f"http://127.0.0.1:{self._ports.metrics}/metrics"

    async def start(self) -> None:
        """Start the server on its database.

        Raises:
            ServerNotReachedError: The server did not answer after several starts.
        """
        for left in reversed(range(3)):
            try:
                server = embedded_server(self._state, self._ports, self._env, config=self._config)
                told = await self._life.enter_async_context(server)
                break
            except ServerNotReachedError:
                if not left:
                    raise
        self.pid = Pid.of(told.server_pid)
        self.up.set()

    async def kill(self) -> None:
        """Kill the server."""
        self.up.clear()
        self.pid.signal(signal.SIGKILL)
        await self._life.aclose()

    async def stop(self) -> None:
        """Stop the server in order."""
        self.up.clear()
        await self._life.aclose()


@dataclass
class Worker:
    """A worker process and its successors."""

    argv: Sequence[str]
    env: Mapping[str, str]
    folder: Path
    server: Server
    pid: Pid = NOBODY
    ready_at: float = 0.0
    _process: "subprocess.Popen[bytes] | None" = None

    @property
    def ready(self) -> bool:
        """Return whether the worker serves."""
        return self.ready_at > 0 and self.pid.lives

    def last_words(self) -> str | None:
        """Return the output of a worker that ended by itself; `None` if it serves or the trial ended it."""
        if not self.ready_at or self._process is None or self._process.poll() is None:
            return None
        self.ready_at = 0.0
        said, _ = self._process.communicate()
        return f"exit code {self._process.returncode}, {said.decode(errors='replace').strip()[:_SAID_CHARACTERS]}"

    async def start(self) -> None:
        """Start a worker and wait until it serves; a worker that finds no server is started again.

        Raises:
            RuntimeError: No start led to a serving worker.
        """
        for _ in range(_TRIES):
            await self.server.up.wait()
            with (self.folder / "worker.log").open("ab") as log:
                self._process = subprocess.Popen(  # noqa: ASYNC220 -- it starts in a millisecond
                    list(self.argv), cwd=self.folder, env=dict(self.env), stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=log, start_new_session=True,
                )  # fmt: skip
            self.pid = Pid.of(self._process.pid)
            if await asyncio.to_thread(_came_to_serve, self._process):
                self.ready_at = time.time()
                return
            await asyncio.to_thread(self._process.communicate)
            await asyncio.sleep(0.5)
        raise RuntimeError(f"No worker came to serve: see {self.folder / 'worker.log'}.")

    async def end(self, number: signal.Signals) -> None:
        """End the worker by a signal and wait for its end."""
        self.ready_at = 0.0
        if self._process is None:
            return
        self.pid.signal(number)
        try:
            await asyncio.to_thread(self._process.wait, _STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.pid.signal(signal.SIGKILL)
            await asyncio.to_thread(self._process.wait)
        if self._process.stdout is not None:
            self._process.stdout.close()


def _came_to_serve(process: "subprocess.Popen[bytes]") -> bool:
    """Wait for a worker's first line, and return whether the worker is ready."""
    line = process.stdout.readline() if process.stdout is not None else b""
    return line != b"" and not line.startswith(_REFUSAL)


@dataclass
class Ground:
    """The surroundings of one trial."""

    folder: Path
    server: Server
    client: Client
    env: dict[str, str]
    """The environment of all started processes: `HOME` lies in the folder, so that leftovers can be found."""
    journal: Journal
    origins: list[Path]
    silent: SilentRemote
    """Another origin, which never answers."""
    workers: list[Worker] = field(default_factory=list)

    _host: int = 1

    @property
    def state(self) -> Path:
        """Return the state directory of the host."""
        return self.folder / f"host-{self._host}"

    def name_build(self, build: str) -> None:
        """Let later workers be of this build."""
        self.env = {**self.env, "SEPTET_BUILD_ID": build}

    def move(self) -> None:
        """Replace the host by a new, empty host."""
        self._host += 1
        self.env = {**self.env, "SEPTET_STATE_DIR": str(self.state)}


@asynccontextmanager
async def ground(plan: Plan, config: Mapping[str, JsonValue] | None = None) -> AsyncIterator[Ground]:
    """Yield the ground with a running server during the block; `config` adds to the server's settings."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(_kept() if plan.keep else scratch())
        silent = await stack.enter_async_context(silent_remote())
        env = {**_environ(folder, plan), "SEPTET_GITHUB_HOSTS": silent.address}
        origins = [_origin(folder / f"origin-{number}.git", number, env) for number in range(_ORIGINS)]
        server_env = {name: env[name] for name in ("PATH", "HOME", "LANG")}
        server = Server(StateDir(folder / "server"), server_env, {**DYNAMIC_CONFIG, **(config or {})})
        await server.start()
        quiet = Runtime(telemetry=TelemetryConfig(logging=None))  # it would log each absence of the server
        client = await Client.connect(server.address, plugins=[SeptetPlugin()], runtime=quiet)
        laid = Ground(
            folder,
            server,
            client,
            {**env, "TEMPORAL_ADDRESS": server.address},
            Journal(folder / "journal"),
            origins,
            silent,
        )
        try:
            yield laid
        finally:
            for worker in laid.workers:
                worker.pid.signal(signal.SIGCONT)
                await worker.end(signal.SIGTERM)
            await server.stop()


@contextmanager
def _kept() -> Iterator[Path]:
    """Yield a folder that stays, and print its path."""
    folder = Path(tempfile.mkdtemp(prefix="septet-chaos-"))
    print(folder)
    yield folder


def _environ(folder: Path, plan: Plan) -> dict[str, str]:
    home, agent = folder / "home", folder / "agent.sh"
    home.mkdir()
    (folder / "host-1").mkdir(mode=0o700)
    python = Path(psutil.Process().exe())
    agent.write_text(_AGENT.format(python=python, program=Path(__file__).with_name("agent.py")), encoding="utf-8")
    agent.chmod(0o755)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "SEPTET_STATE_DIR": str(folder / "host-1"),
        "SEPTET_LOG_LEVEL": "warning",
        "SEPTET_LOG_FORMAT": "json",
        "SEPTET_SCRIPTED_PATH": str(agent),
        "SEPTET_SCRIPTED_CHAOS": str(folder / "journal"),
        "SEPTET_GUEST_PATHS": ",".join([str(ROOT), sys.prefix, sys.base_prefix, f"{folder}:rw"]),
        "SEPTET_SCRIPTED_STEP_SECONDS": str(plan.step_seconds),
        "SEPTET_SESSIONS": plan.sessions,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": "0",
        **(_for_lost_hosts(folder) if "host" in plan.kinds else {}),
    }


def _for_lost_hosts(folder: Path) -> dict[str, str]:
    """Return the settings with which work moves to another host soon."""
    return {
        "SEPTET_CHECKPOINT_REMOTE": str(folder / "checkpoints"),
        "SEPTET_PROBE_SECONDS": "3",
        "SEPTET_ORPHAN_LIMIT_SECONDS": "5",
    }


def _origin(path: Path, seed: int, env: Mapping[str, str]) -> Path:
    """Make an origin that logs each push."""
    make_repository(path, 20, seed, env)
    processes.run(["git", "--git-dir", str(path), "config", "core.logAllRefUpdates", "always"], env=env)
    return path
