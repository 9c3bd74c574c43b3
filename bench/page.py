"""The page with a thousand work orders on the board: its first paint, and the bytes of its own script."""

import asyncio
import json
import os
import sys

from pydantic import SecretStr

from bench.board import fill_board
from bench.figure import Figure, median
from bench.machine import ROOT
from bench.pace import Pace
from bench.stage import stage
from clients.http.serving import Door, serve_api
from clients.operations.operations import Operations
from clients.page.rendering import static_file
from clients.temporal.work_orders import WorkOrders
from septet.state import StateDir
from workers.server.ports import free_port
from workers.server.preflight import register_search_attributes

PAINT_TARGET_SECONDS = 1.0
SCRIPT_TARGET_BYTES = 10_000
_ORDERS = 1000


def measure(pace: Pace) -> list[Figure]:
    """Measure the first paint of a full board from the request on, and count the script's bytes."""
    paints = asyncio.run(_paint_seconds(pace.times(10, 3)))
    note = f"p50 of {len(paints)}, the slowest {max(paints):.2f}; {_ORDERS} work orders, an empty cache"
    return [
        Figure("first paint of the board", median(paints), "s", PAINT_TARGET_SECONDS, note=note),
        Figure("the page's own script", len(static_file("page.js")), "bytes", SCRIPT_TARGET_BYTES),
    ]


async def _paint_seconds(times: int) -> list[float]:
    async with stage() as on:
        await register_search_attributes(on.client)
        await fill_board(on, _ORDERS)
        settings = on.settings.model_copy(update={"api_token": SecretStr("none")})
        operations = Operations(WorkOrders(on.client), StateDir(settings.state_dir), settings.git_env)
        async with serve_api(operations, settings, Door(free_port(), "--port")) as served:
            return await _painted(served.address, times)


async def _painted(address: str, times: int) -> list[float]:
    """Return the seconds of each visit; the browser is a program of the tests in another process."""
    argv = (sys.executable, "-m", "bench.first_paints", address, str(times))
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    process = await asyncio.create_subprocess_exec(*argv, cwd=ROOT, env=environ, stdout=asyncio.subprocess.PIPE)
    told, _ = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError("The browser did not show the page.")
    seconds: list[float] = json.loads(told)
    return seconds
