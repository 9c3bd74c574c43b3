"""The wait of a person at a terminal for `septet run --wait`: until its id appears, and its first step."""

import asyncio
import os
import pty
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bench.figure import Figure, percentile
from bench.pace import Pace
from bench.stage import SEPTET, program, scratch
from workers.server.ports import free_port

TARGET_SECONDS = 1.0
_GIVE_UP_SECONDS = 60.0
_FIRST_STEP = b"classify_issue"
_IMPORTS = "import cyclopts, temporalio.client"
_FILES = {"app.py": 'print("Helo")\n'}
_BODY = "In `app.py`, `Helo` should be `Hello`."


@dataclass(frozen=True, slots=True)
class Desk:
    """A person's repository, beside a running `septet up`."""

    repository: Path
    environ: dict[str, str]


def measure(pace: Pace) -> list[Figure]:
    """Measure both on a terminal, and a Python that only imports what such a command needs."""
    times = pace.times(10, 3)
    with scratch() as folder:
        commands, bare = asyncio.run(_on_a_desk(folder, times))
    seen = {"id": [each for each, _ in commands], "first step": [each for _, each in commands]}
    return [
        Figure(f"run --wait, {name}, p{percent}", percentile(seconds, percent), "s", TARGET_SECONDS,
               baseline=percentile(bare, percent), beside=f"python -c '{_IMPORTS}', p{percent}",
               note=f"of {times}, on a terminal of its own")
        for name, seconds in seen.items() for percent in (50, 95)
    ]  # fmt: skip


async def _on_a_desk(folder: Path, times: int) -> tuple[list[tuple[float, float]], list[float]]:
    """Return each command's seconds until its id and its first step, and the seconds of the bare Python."""
    environ = {
        **os.environ,
        "SEPTET_STATE_DIR": str(folder / "state"),
        "SEPTET_AGENT": "scripted",
        "SEPTET_LOG_LEVEL": "error",
    }
    ports = [part for option in ("--port", "--ui-port", "--api-port") for part in (option, str(free_port()))]
    async with program([str(SEPTET), "up", "--json", *ports], environ):
        desk = Desk(_repository(folder / "shop"), environ)
        await _alternate(desk, 0)  # the first command meets a new worker
        done = [await _alternate(desk, number) for number in range(1, times + 1)]
    return [shown for shown, _ in done], [bare for _, bare in done]


async def _alternate(desk: Desk, number: int) -> tuple[tuple[float, float], float]:
    """Time the command and then the bare Python, so that both meet the same load."""
    shown = await asyncio.to_thread(_seconds_on_a_terminal, desk, f"wo-hands-{number}")
    return shown, await asyncio.to_thread(_seconds_bare)


def _seconds_on_a_terminal(desk: Desk, order: str) -> tuple[float, float]:
    argv = [str(SEPTET), "run", "--title", "Fix the greeting", "--body", _BODY, "--id", order, "--wait"]
    parent, child = pty.openpty()
    begin = time.perf_counter()
    with subprocess.Popen(
        argv, cwd=desk.repository, env=_terminal(desk.environ), stdin=child, stdout=child, stderr=child
    ) as process:
        os.close(child)
        try:
            wait_for = _Painted(parent, begin)
            shown = (wait_for(order.encode()), wait_for(_FIRST_STEP))
            wait_for.rest()
        finally:
            process.wait(_GIVE_UP_SECONDS)
            os.close(parent)
    return shown


def _terminal(environ: dict[str, str]) -> dict[str, str]:
    return {**environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"}


@dataclass(slots=True)
class _Painted:
    """The output of a terminal so far."""

    descriptor: int
    begin: float
    content: bytes = b""

    def __call__(self, text: bytes) -> float:
        """Return the seconds until a text was painted.

        Raises:
            RuntimeError: The command ended without it.
        """
        while text not in self.content:
            if not self._read():
                raise RuntimeError(f"{text!r} was never painted: {self.content!r}")
        return time.perf_counter() - self.begin

    def rest(self) -> None:
        """Read until the command has ended."""
        while self._read():
            pass

    def _read(self) -> bool:
        ready = select.select([self.descriptor], [], [], _GIVE_UP_SECONDS)[0]
        try:
            chunk = os.read(self.descriptor, 65536) if ready else b""
        except OSError:  # its other end is closed
            chunk = b""
        self.content += chunk
        return bool(chunk)


def _seconds_bare() -> float:
    begin = time.perf_counter()
    _run([sys.executable, "-c", _IMPORTS])
    return time.perf_counter() - begin


def _repository(folder: Path) -> Path:
    """Make a checkout as people have."""
    folder.mkdir()
    for name, text in _FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org", "-C", str(folder)]
    for words in (
        ["init", "--quiet", "--initial-branch", "main"],
        ["add", "."],
        ["commit", "--quiet", "-m", "one"],
    ):
        _run([*git, *words])
    return folder


def _run(argv: list[str]) -> None:
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
