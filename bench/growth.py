"""How much more two and four workers do than one: all on one host, and each on a host of its own."""

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from bench.figure import Figure
from bench.pace import Pace
from bench.repository import make_repository
from bench.stage import Stage, stage, worker
from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import Status
from septet.contracts.order import WorkOrderInput

LEAST: Final = {2: 1.8, 4: 3.4}
"""How many times the work of one worker so many must do."""
_AGENTS: Final = 4
"""At a time, of each worker: what bounds it, since an agent mostly waits for its model."""
_AGENT_SECONDS: Final = 7
_FILES: Final = 20


def measure(pace: Pace) -> list[Figure]:
    """Measure one worker, then each larger number of them in both ways, with as many work orders for each."""
    return asyncio.run(_measured(pace.times(40, 8), pace.seed))


async def _measured(each: int, seed: int) -> list[Figure]:
    one = await _per_minute(1, each, seed, hosts=False)
    figures = [Figure("one worker: work orders a minute", one, "")]
    for workers, least in LEAST.items():
        for hosts in (False, True):
            done = await _per_minute(workers, each, seed, hosts=hosts)
            where = f"{workers} workers, {'a host each' if hosts else 'one host'}"
            note = f"{done:.1f} work orders a minute; {_AGENTS} agents of {_AGENT_SECONDS} s for each worker"
            figures.append(
                Figure(f"{where}: of the work of one", done / one, "times", least, "at least", note=note)
            )
    return figures


async def _per_minute(workers: int, each: int, seed: int, *, hosts: bool) -> float:
    """Return the work orders that so many workers complete in a minute."""
    async with AsyncExitStack() as stack:
        on = await stack.enter_async_context(stage())
        origin = on.settings.state_dir / "origin.git"
        await asyncio.to_thread(make_repository, origin, _FILES, seed, on.settings.git_env)
        for number in range(workers):
            state = on.settings.state_dir.with_name(f"host-{number}") if hosts else on.settings.state_dir
            await stack.enter_async_context(worker(on, _environ(on, state)))
        begin = time.perf_counter()
        await asyncio.gather(*(_carry_out(on, str(origin), f"wo-{number}") for number in range(workers * each)))
        return 60 * workers * each / (time.perf_counter() - begin)


def _environ(on: Stage, state: Path) -> dict[str, str]:
    state.mkdir(mode=0o700, exist_ok=True)
    own = {"SEPTET_MAX_AGENTS": str(_AGENTS), "SEPTET_SCRIPTED_SECONDS": str(_AGENT_SECONDS)}
    return {**on.environ, **own, "SEPTET_STATE_DIR": str(state)}


async def _carry_out(on: Stage, origin: str, order_id: str) -> None:
    orders = WorkOrders(on.client)
    await orders.start(WorkOrderInput(repository=origin, title="Tell that it is done", agent="scripted"), order_id)
    task = await orders.wait(order_id)
    if task.status is not Status.COMPLETED:
        raise RuntimeError(f"{order_id} is {task.status.value}: {task.error}")
