"""The work of two and four workers compared with one: all on one host, and each on its own host."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Final

from bench.figure import Figure
from bench.pace import Pace
from bench.repository import make_repository
from bench.stage import Stage, stage, worker
from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import Status
from septet.contracts.order import WorkOrderInput
from septet.errors import RefusedTransitionError

LEAST: Final = {2: 1.8, 4: 3.4}
"""The least work of this many workers, as a multiple of one worker's."""
_AGENTS: Final = 4
"""The simultaneous agents of each worker: the bound of its work, because an agent mostly waits for its model."""
_OPEN: Final = 2 * _AGENTS
"""The open work orders of each worker at all times, so that none of its agents' places stays free for long."""
_STEP_SECONDS: Final = 3
"""The seconds of an agent's step; a real agent takes longer."""
_FILES: Final = 20


def measure(pace: Pace) -> list[Figure]:
    """Measure one worker, each larger number in both ways, and one worker again: the mean is the baseline.

    The count is of steps that end while all workers have work. The first and the last work orders are left out: at
    the beginning all open their workspaces, and at the end fewer than the agents remain.
    """
    return asyncio.run(_measured(pace.times(90, 30), pace.times(30, 15), pace.seed))


async def _measured(seconds: float, settling: float, seed: int) -> list[Figure]:
    async def measured(workers: int, *, hosts: bool = False) -> float:
        return await _steps_per_minute(workers, seconds, settling, seed, hosts=hosts)

    before = await measured(1)
    crews = [(workers, hosts) for workers in LEAST for hosts in (False, True)]
    done = [await measured(workers, hosts=hosts) for workers, hosts in crews]
    after = await measured(1)
    one, note = (before + after) / 2, f"{before:.1f} before the others, {after:.1f} after them"
    return [
        Figure("one worker: steps a minute", one, "", note=note),
        *(
            Figure(
                f"{workers} workers, {'a host each' if hosts else 'one host'}: of the work of one",
                steps / one, "times", LEAST[workers], "at least",
                note=f"{steps:.1f} steps a minute; {_AGENTS} agents of {_STEP_SECONDS} s for each worker",
            )
            for (workers, hosts), steps in zip(crews, done, strict=True)
        ),
    ]  # fmt: skip


async def _steps_per_minute(workers: int, seconds: float, settling: float, seed: int, *, hosts: bool) -> float:
    """Return the steps a minute of this many workers, once each has as many work orders as it can take."""
    async with AsyncExitStack() as stack:
        on = await _stage_with_repository(stack, seed)
        first = on.settings.state_dir
        states = [first.with_name(f"host-{number}") for number in range(workers)] if hosts else [first]
        for number in range(workers):
            await stack.enter_async_context(worker(on, _environ(on, states[number % len(states)])))
        over = asyncio.Event()
        async with asyncio.TaskGroup() as beside:
            for number in range(workers * _OPEN):
                later = number * _STEP_SECONDS / (workers * _OPEN)  # otherwise all work at once
                beside.create_task(_keep_open(on, f"wo-{number}", later, over))
            await asyncio.sleep(settling)
            before, begin = _steps_ended(states), time.perf_counter()
            await asyncio.sleep(seconds)
            steps, took = _steps_ended(states) - before, time.perf_counter() - begin
            over.set()
        return 60 * steps / took


async def _stage_with_repository(stack: AsyncExitStack, seed: int) -> Stage:
    """Start a stage with the repository of all work orders."""
    on = await stack.enter_async_context(stage())
    await asyncio.to_thread(make_repository, _origin(on), _FILES, seed, on.settings.git_env)
    return on


def _origin(on: Stage) -> Path:
    return on.settings.state_dir / "origin.git"


def _environ(on: Stage, state: Path) -> dict[str, str]:
    state.mkdir(mode=0o700, exist_ok=True)
    own = {"SEPTET_MAX_AGENTS": str(_AGENTS), "SEPTET_SCRIPTED_STEP_SECONDS": str(_STEP_SECONDS)}
    return {**on.environ, **own, "SEPTET_STATE_DIR": str(state)}


def _steps_ended(states: Sequence[Path]) -> int:
    """Return the number of agents that have ended, by their hosts' disks: each runs one step."""
    return sum(1 for state in states for _ in state.glob("runs/*/*/exit.json"))


async def _keep_open(on: Stage, name: str, later: float, over: asyncio.Event) -> None:
    """Run one work order after the other until the event is set; then cancel the last."""
    orders, ending = WorkOrders(on.client), asyncio.create_task(over.wait())
    await asyncio.sleep(later)
    for number in count():
        order_id = f"{name}-{number}"
        given = WorkOrderInput(repository=str(_origin(on)), title="Tell that it is done", agent="scripted")
        await orders.start(given, order_id)
        waiting = asyncio.create_task(orders.wait(order_id))
        await asyncio.wait((waiting, ending), return_when=asyncio.FIRST_COMPLETED)
        if over.is_set():
            waiting.cancel()
            with suppress(RefusedTransitionError):  # the work order has just ended
                await orders.cancel_and_wait(order_id)
            return
        if (task := waiting.result()).status is not Status.COMPLETED:
            raise RuntimeError(f"{order_id} is {task.status.value}: {task.error}")
