"""Work orders do not hold each other up, and agents soon receive a cancel, a pause and a reset.

A work order beside eight that hang; a cancel while all slots are taken; a cancel, a pause and a reset of a step
whose agent works.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import PauseActivityRequest, ResetActivityRequest
from temporalio.service import RPCError

from bench.figure import Figure, median
from bench.pace import Pace
from bench.repository import make_repository
from bench.stage import Stage, stage, worker
from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import Status
from septet.contracts.order import WorkOrderInput

BESIDE_TARGET_RATIO: Final = 1.5
"""The most time of an unrelated work order, as a multiple of its time on a quiet host."""
CANCEL_TARGET_SECONDS: Final = 2.0
ENDED_TARGET_SECONDS: Final = 4.0
"""Two seconds until a cancel reaches the working agent, and two seconds of grace until the kill."""
TOLD_TARGET_SECONDS: Final = 30.0
"""The seconds until a pause or a reset reaches the working agent: its worker polls for them every few seconds."""
_HANGING: Final = 8
_PATIENCE_SECONDS: Final = 600.0
_AGENT_SECONDS: Final = 60
"""The seconds for which the one slot is taken while another work order is cancelled."""
_LOOK_SECONDS: Final = 0.02
_STEP: Final = "classify_issue-1"


def measure(pace: Pace) -> list[Figure]:
    """Measure all parts, each on its own server and worker."""
    parts = (_beside_hanging, _queued_cancel, _told_agents)
    return [figure for part in parts for figure in asyncio.run(part(pace))]


async def _beside_hanging(pace: Pace) -> list[Figure]:
    """Run a work order alone, and again while eight others wait for a remote that accepts and never answers."""
    async with stage() as on, _silent_remote() as (port, connections):
        hosts = {**on.environ, "SEPTET_GITHUB_HOSTS": f"127.0.0.1:{port}"}
        async with worker(on, hosts):
            await _order_seconds(on, "warm")
            quiet = median([await _order_seconds(on, f"quiet-{number}") for number in range(pace.times(5, 2))])
            for number in range(_HANGING):
                await _start(on, f"hangs-{number}", f"http://127.0.0.1:{port}/o/r{number}")
            async with asyncio.timeout(_PATIENCE_SECONDS):
                while not connections:  # noqa: ASYNC110 -- the worker's git connects at any time
                    await asyncio.sleep(_LOOK_SECONDS)
            beside = median([await _order_seconds(on, f"beside-{number}") for number in range(pace.times(3, 1))])
            for number in range(_HANGING):
                await on.client.get_workflow_handle(f"wo-hangs-{number}").terminate()
    note = (
        f"{_HANGING} others hang on a remote that accepts and never answers; {beside:.1f} s, quiet {quiet:.1f} s"
    )
    return [Figure("an unrelated work order", beside / quiet, "times", BESIDE_TARGET_RATIO, note=note)]


@asynccontextmanager
async def _silent_remote() -> AsyncIterator[tuple[int, list[asyncio.StreamWriter]]]:
    """Accept connections on loopback and never answer; yield the port and the growing list of connections."""
    connections: list[asyncio.StreamWriter] = []

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], connections
    finally:
        server.close()
        for writer in connections:
            writer.close()


async def _queued_cancel(pace: Pace) -> list[Figure]:
    """Cancel work orders that wait for the one slot, which an agent holds for a minute."""
    async with stage() as on:
        one_slot = {**on.environ, "SEPTET_MAX_AGENTS": "1", "SEPTET_SCRIPTED_SECONDS": str(_AGENT_SECONDS)}
        async with worker(on, one_slot):
            await _start(on, "holds", await _origin(on))
            await _until_said(on, "holds", "working")
            seconds = [await _cancel_seconds(on, f"queued-{number}") for number in range(pace.times(3, 1))]
            await WorkOrders(on.client).cancel_and_wait("wo-holds")
            await WorkOrders(on.client).wait("wo-holds")
    note = f"the slowest of {len(seconds)}, until the work order is closed"
    return [
        Figure(
            "cancel of a queued work order, all slots taken", max(seconds), "s", CANCEL_TARGET_SECONDS, note=note
        )
    ]


async def _cancel_seconds(on: Stage, name: str) -> float:
    """Cancel a work order whose first step is queued, and return the seconds until its end."""
    orders = WorkOrders(on.client)
    await _start(on, name, await _origin(on))
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while not await _is_queued(on, name):  # noqa: ASYNC110 -- the server does not notify
            await asyncio.sleep(_LOOK_SECONDS)
    begin = time.perf_counter()
    await orders.cancel_and_wait(f"wo-{name}")
    await orders.wait(f"wo-{name}")
    return time.perf_counter() - begin


async def _is_queued(on: Stage, name: str) -> bool:
    described = await on.client.get_workflow_handle(f"wo-{name}").describe()
    pending = described.raw_description.pending_activities
    return any(activity.activity_type.name == "classify_issue" for activity in pending)


async def _told_agents(pace: Pace) -> list[Figure]:
    """Cancel work orders, and pause and reset steps, whose agents work for a minute."""

    async def cancel(name: str) -> None:
        await WorkOrders(on.client).cancel_and_wait(name)

    async def pause(name: str) -> None:
        execution = WorkflowExecution(workflow_id=name)
        request = PauseActivityRequest(namespace=on.client.namespace, execution=execution, id=_STEP)
        await on.client.workflow_service.pause_activity(request)

    async def reset(name: str) -> None:
        execution = WorkflowExecution(workflow_id=name)
        request = ResetActivityRequest(namespace=on.client.namespace, execution=execution, id=_STEP)
        await on.client.workflow_service.reset_activity(request)

    async with stage() as on, worker(on, {**on.environ, "SEPTET_SCRIPTED_SECONDS": str(_AGENT_SECONDS)}):
        seconds = {
            tell.__name__: [await _told_seconds(on, f"{tell.__name__}-{number}", tell) for number in range(times)]
            for tell in (cancel, pause, reset)
            for times in [pace.times(3, 1)]
        }
    targets = {
        "cancel": (CANCEL_TARGET_SECONDS, ENDED_TARGET_SECONDS),
        "pause": (TOLD_TARGET_SECONDS, None),
        "reset": (TOLD_TARGET_SECONDS, None),
    }
    return [
        Figure(
            f"a {what} until the agent {event}", max(times[at] for times in seconds[what]), "s", target, note=note
        )
        for what, both in targets.items()
        for note in [f"the slowest of {len(seconds[what])}"]
        for at, (event, target) in enumerate(zip(("is told", "has ended"), both, strict=True))
    ]


async def _told_seconds(on: Stage, name: str, tell: Callable[[str], Awaitable[None]]) -> tuple[float, float]:
    """Send `tell` to a step with a working agent; return the seconds until its agent's SIGTERM and its end."""
    await _start(on, name, await _origin(on))
    await _until_said(on, name, "working")
    begin = time.perf_counter()
    await tell(f"wo-{name}")
    await _until_said(on, name, "told")
    told = time.perf_counter() - begin
    await _until_said(on, name, "{", "exit.json")
    ended = time.perf_counter() - begin
    with suppress(RPCError):  # a cancelled work order is closed
        await on.client.get_workflow_handle(f"wo-{name}").terminate()
    return told, ended


async def _order_seconds(on: Stage, name: str) -> float:
    begin = time.perf_counter()
    await _start(on, name, await _origin(on))
    task = await WorkOrders(on.client).wait(f"wo-{name}")
    if task.status is not Status.COMPLETED:
        raise RuntimeError(f"wo-{name} is {task.status.value}: {task.error}")
    return time.perf_counter() - begin


async def _start(on: Stage, name: str, repository: str) -> None:
    order = WorkOrderInput(repository=repository, title="Tell that it is done", agent="scripted")
    await WorkOrders(on.client).start(order, f"wo-{name}")


async def _origin(on: Stage) -> str:
    origin = on.settings.state_dir / "origin.git"
    if not origin.exists():
        await asyncio.to_thread(make_repository, origin, 100, 0, on.settings.git_env)
    return str(origin)


async def _until_said(on: Stage, name: str, word: str, file: str = "stderr.log") -> None:
    """Wait until the first agent of a work order has written a word to this file of its record."""
    runs = on.settings.state_dir / "runs" / f"wo-{name}"
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while not any(word in path.read_text() for path in runs.glob(f"1-*-1/{file}")):  # noqa: ASYNC110 -- another process writes it
            await asyncio.sleep(_LOOK_SECONDS)
