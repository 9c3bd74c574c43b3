"""The real `septet` and `temporal` commands as subprocesses, with their own state directory, home and ports."""

import json
import os
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any, Final

import httpx
import psutil
from fakes.guest_paths import guest_paths_variable
from fakes.repositories import Origin
from fakes.waiting import until
from fakes.warm_command import WarmProgram, run_septet

from septet.contracts.names import Step

WITHIN_SECONDS = 60.0
_ASK_EVERY_SECONDS = 0.1
_NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""The TLS context of loopback clients: loading the machine's certificates takes as long as a few answers."""
_CLOSED = {"completed", "failed", "cancelled"}
_TESTERS = 16
FIRST_RUNS: Final = {step: f"{step.number}-{step.value}-1" for step in Step}
"""The name of a step's first agent run."""
ONCE: Final = [*FIRST_RUNS.values()]
"""The agent runs of a work order whose steps each started one agent."""
_WARM: Final = frozenset({"up", "worker"})
_serving: Final[dict[int, WarmProgram]] = {}
PROGRAMS = Path(sys.executable).parent
_SCENARIO_BY_ORDER = f"""\
#!/bin/sh
# The scripted agent with the scenario of its work order, where there is one: a workspace is named after its order.
# Where somebody looks, it first writes down how it finds the worktree.
if [ -d "{{scenarios}}/$(basename "$PWD").seen" ]; then
    {{{{ git symbolic-ref -q HEAD; git rev-parse HEAD; git status --porcelain --untracked-files=all; }}}} \
        > "{{scenarios}}/$(basename "$PWD").seen/.$$"
    mv "{{scenarios}}/$(basename "$PWD").seen/.$$" "{{scenarios}}/$(basename "$PWD").seen/$(date +%s%N)"
fi
if [ -f "{{scenarios}}/$(basename "$PWD").json" ]; then
    SEPTET_SCRIPTED_SCENARIO="{{scenarios}}/$(basename "$PWD").json"
elif [ -z "$SEPTET_SCRIPTED_SCENARIO" ]; then
    SEPTET_SCRIPTED_SCENARIO="{Path(__file__).parent / "no_trouble.json"}"
fi
export SEPTET_SCRIPTED_SCENARIO
exec "{sys.executable}" -P "{Path(__file__).with_name("scripted_program.py")}" "$@"
"""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        assert self.out.count("\n") == 1, f"stdout is not one line: {self.out!r}; stderr: {self.err}"
        answer = json.loads(self.out)
        assert isinstance(answer, dict)
        return answer

    @property
    def error(self) -> dict[str, str]:
        answer = self.json
        assert answer["ok"] is False
        told: dict[str, str] = answer["error"]
        assert set(told) == {"type", "message", "remedy"}
        return told


@dataclass
class Running:
    process: "subprocess.Popen[str] | WarmProgram"
    ready: dict[str, Any]
    lines: list[str]
    errors: list[str]

    @property
    def address(self) -> str:
        return str(self.ready["address"])

    @property
    def api(self) -> str:
        return str(self.ready["api"])

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(WITHIN_SECONDS)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(WITHIN_SECONDS)


@dataclass
class Septet:
    """One person's machine: `septet` with a state directory and a home below `root`."""

    root: Path
    extra: Mapping[str, str] = field(default_factory=dict)
    page: str = ""
    shares: "Septet | None" = None
    """The machine whose server this machine shares, and whose HTTP API reports work orders; `None` for its own."""

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def api(self) -> httpx.Client:
        token = (self._owner.state / "api-token").read_text(encoding="ascii").strip()
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(
            base_url=self.addresses["api"],
            headers=headers,
            trust_env=False,
            timeout=WITHIN_SECONDS,
            verify=_NO_CERTIFICATES,
        )

    @property
    def addresses(self) -> dict[str, Any]:
        """Return what `septet up` of this machine or of the shared machine has noted of its server."""
        told: dict[str, Any] = json.loads((self._owner.state / "server.json").read_text(encoding="utf-8"))
        return told

    @property
    def address(self) -> str:
        return str(self.addresses["address"])

    @property
    def _owner(self) -> "Septet":
        return self.shares or self

    @property
    def env(self) -> dict[str, str]:
        home = self.root / "home"
        home.mkdir(parents=True, exist_ok=True)
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "NO_COLOR": "1",
            "COLUMNS": "120",
            "SEPTET_STATE_DIR": str(self.state),
            "SEPTET_AGENT": "scripted",
            **guest_paths_variable(self.root.parent),
            "SEPTET_SCRIPTED_PATH": str(self._agent(home)),
            **self.extra,
        }

    def scenario(self, order_id: str, content: Mapping[str, Any]) -> str:
        folder = self.root / "scenarios"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{order_id}.json").write_text(json.dumps(content), encoding="utf-8")
        return order_id

    def look(self, order_id: str) -> Callable[[], list[str]]:
        """Let the agents of a work order record the worktree's state at their start; return a reader of the records."""
        seen = self.root / "scenarios" / f"{order_id}.seen"
        seen.mkdir(parents=True)
        return lambda: [path.read_text(encoding="utf-8") for path in sorted(seen.glob("[0-9]*"))]

    def __call__(self, *args: str | Path, cwd: Path | None = None) -> Ended:
        argv = [str(part) for part in (PROGRAMS / "septet", *args)]
        with TemporaryDirectory(prefix="septet-") as output:
            return Ended(*run_septet(argv, self.env, cwd or Path.cwd(), Path(output), WITHIN_SECONDS))

    def start(self, origin: Origin, order_id: str, *more: str, title: str = "Do it", **steps: Any) -> str:
        """Start a work order whose agents have these scripts by step, and return its id."""
        if steps:
            self.scenario(order_id, {"steps": steps})
        started = self("run", "--repo", origin.bare, "--title", title, "--id", order_id, *more, "--json")
        assert started.code == 0, started
        return order_id

    def temporal(self, *args: str) -> Ended:
        return self.run_program("temporal", *args, "--address", self.address)

    @contextmanager
    def up(self, **extra: str) -> Iterator[Running]:
        """Run `septet up` on free ports during the block; at the end stop its remains."""
        options = ("--port", "--ui-port", "--api-port")
        ports = [part for pair in zip(options, map(str, free_ports(3)), strict=True) for part in pair]
        with self.serving("up", *ports, **extra) as running:
            yield running

    @contextmanager
    def serving(self, *args: str, **extra: str) -> Iterator[Running]:
        """Run a command until the end of the block; then stop all processes of this state directory."""
        try:
            with self.beside(*args, **extra) as running:
                yield running
        finally:
            self.end_all()

    @contextmanager
    def beside(self, *args: str, **extra: str) -> Iterator[Running]:
        """Run a command during the block beside others of this machine, which stay."""
        process = self._serve(*args, "--json", **extra)
        lines: list[str] = []
        errors: list[str] = []
        readers = [
            threading.Thread(target=_collect, args=pair)
            for pair in ((process.stdout, lines), (process.stderr, errors))
        ]
        for reader in readers:
            reader.start()
        try:
            until(lambda: lines or process.poll() is not None)
            assert process.poll() is None, f"it ended: {lines} {errors}"
            yield Running(process, json.loads(lines[0]), lines, errors)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(WITHIN_SECONDS)
            process.kill()
            for reader in readers:
                reader.join(WITHIN_SECONDS)

    @contextmanager
    def started(self, *args: str) -> Iterator["subprocess.Popen[str]"]:
        with self._popen(*args) as process:
            try:
                yield process
            finally:
                process.kill()

    def processes(self) -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if self._is_own(process)]

    def end_all(self) -> None:
        until(self._none_is_left)

    def _none_is_left(self) -> bool:
        left = self.processes()
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        return not left

    def wait_for(
        self, path: str, holds: Callable[[Any], object] = bool, seconds: float = WITHIN_SECONDS, **query: str
    ) -> Any:
        """Poll the HTTP API until `holds` is true of the answer, and return the answer."""
        with self.api as api:

            def ask() -> Any:
                with suppress(httpx.TransportError):
                    answer = api.get(path, params=query)
                    return answer.json() if answer.is_success else None
                return None

            return until(ask, seconds, holds=holds, every_seconds=_ASK_EVERY_SECONDS)

    def wait_for_order(
        self, order_id: str, holds: str | Callable[[dict[str, Any]], object], seconds: float = WITHIN_SECONDS
    ) -> dict[str, Any]:
        """Wait until a work order has this status or stage, or fulfils `holds`, and return it."""
        order: dict[str, Any] = self.wait_for(f"/agent-work-orders/{order_id}", _is_at(holds), seconds)
        return order

    def wait_for_detail(self, order_id: str, holds: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        detail: dict[str, Any] = self.wait_for(f"/agent-work-orders/{order_id}/detail", holds)
        return detail

    def wait_for_pipeline(
        self, name: str, holds: str | Callable[[dict[str, Any]], object], seconds: float = WITHIN_SECONDS
    ) -> dict[str, Any]:
        is_there = _is_at(holds)
        reply = self.wait_for(f"/pipelines/{name}", lambda reply: is_there(reply["pipeline"]), seconds)
        pipeline: dict[str, Any] = reply["pipeline"]
        return pipeline

    def closed(self, order_id: str, seconds: float = WITHIN_SECONDS) -> dict[str, Any]:
        return self.wait_for_order(order_id, lambda order: order["status"] in _CLOSED, seconds)

    def cancelled(self, order_id: str) -> dict[str, Any]:
        """Cancel a work order, and return it after its end, which may come after the command's answer."""
        ended = self("cancel", order_id, "--json")
        assert ended.code == 0, ended
        return self.closed(order_id)

    def until_works(self, order_id: str, run: str) -> None:
        stream = self.state / "runs" / order_id / run / "stdout.jsonl"
        until(lambda: stream.exists() and stream.stat().st_size)

    def runs(self, order_id: str) -> list[str]:
        return sorted(path.name for path in (self.state / "runs" / order_id).iterdir() if path.is_dir())

    def _agent(self, home: Path) -> Path:
        path = home / "scripted-agent"
        if not path.exists():
            with NamedTemporaryFile("w", dir=home, prefix="scripted-agent.", delete=False) as draft:
                draft.write(_SCENARIO_BY_ORDER.format(scenarios=self.root / "scenarios"))
            Path(draft.name).chmod(0o755)
            Path(draft.name).rename(path)
        return path

    def _serve(self, *args: str, **extra: str) -> "subprocess.Popen[str] | WarmProgram":
        """Start a serving command; commands with many imports are forked from a process that has imported them."""
        if args[0] not in _WARM or "PYTHONPATH" in extra:  # PYTHONPATH counts before the imports
            return self._popen(*args, **extra)
        process = WarmProgram([str(PROGRAMS / "septet"), *args], {**self.env, **extra})
        _serving[process.pid] = process
        return process

    def _popen(self, *args: str, **extra: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [PROGRAMS / "septet", *args],
            env={**self.env, **extra},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run_program(self, program: str, *args: str | Path, cwd: Path | None = None) -> Ended:
        completed = subprocess.run(
            [PROGRAMS / program, *args],
            env=self.env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WITHIN_SECONDS,
            check=False,
        )
        return Ended(completed.returncode, completed.stdout, completed.stderr)

    def _is_own(self, process: psutil.Process) -> bool:
        """Return whether a process names this state directory in its environment, arguments or working folder."""
        if (own := _serving.get(process.pid)) is not None and own.poll() is None:
            return any(str(self.state) in text for text in own.told)
        try:
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                return False
            told = (*process.environ().values(), *process.cmdline(), process.cwd())
        except (psutil.Error, OSError):
            return False
        return any(str(self.state) in text for text in told)


def at_work(septet: Septet, worktree: Path) -> list[psutil.Process]:
    return [process for process in septet.processes() if _folder(process) == str(worktree)]


_returned: Final[set[int]] = set()


def free_port() -> int:
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Return ports outside the range for outgoing connections, which no tester of this machine had before."""
    tester = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _TESTERS
    found: list[int] = []
    for _ in range(100 * count):
        port = 10_000 + secrets.randbelow(20_000 // _TESTERS) * _TESTERS + tester
        if port in found or port in _returned:
            continue
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            _returned.update(found)
            return found
    message = "a hundred ports are taken"
    raise RuntimeError(message)


def _folder(process: psutil.Process) -> str:
    try:
        return process.cwd()
    except (psutil.Error, OSError):
        return ""


def _collect(stream: Any, lines: list[str]) -> None:
    with stream:
        while line := stream.readline():
            lines.append(line)


def _is_at(place: str | Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], object]:
    return place if callable(place) else lambda told: place in {told["status"], told.get("stage")}
