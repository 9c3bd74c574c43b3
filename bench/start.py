"""The waits of a person: for `septet --help`, and until `septet up` is ready."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from bench.figure import Figure, median
from bench.pace import Pace
from bench.stage import SEPTET, program, scratch
from workers.server.ports import free_port

HELP_TARGET_MS = 200.0
UP_TARGET_SECONDS = 5.0


def measure(pace: Pace) -> list[Figure]:
    """Measure both; `--help` is compared with a Python that does nothing."""
    times = pace.times(20, 5)
    _milliseconds([str(SEPTET), "--help"])
    helped = [_milliseconds([str(SEPTET), "--help"]) for _ in range(times)]
    nothing = [_milliseconds([sys.executable, "-c", "pass"]) for _ in range(times)]
    ups = [asyncio.run(_up_seconds()) for _ in range(pace.times(3, 1))]
    note = f"p50 of {times}"
    return [
        Figure("septet --help", median(helped), "ms", HELP_TARGET_MS, baseline=median(nothing),
               beside="python -c pass", note=note),
        Figure("septet up, ready", max(ups), "s", UP_TARGET_SECONDS, note=f"the slowest of {len(ups)}, new state"),
    ]  # fmt: skip


def _milliseconds(argv: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - begin) * 1000


async def _up_seconds() -> float:
    """Return the seconds until `septet up` reports that it is ready."""
    with scratch() as folder:
        ports = [part for option in ("--port", "--ui-port", "--api-port") for part in (option, str(free_port()))]
        begin = time.perf_counter()
        async with program([str(SEPTET), "up", "--json", *ports], _environ(folder)):
            return time.perf_counter() - begin


def _environ(folder: Path) -> dict[str, str]:
    return {**os.environ, "SEPTET_STATE_DIR": str(folder / "state"), "SEPTET_LOG_LEVEL": "error"}
