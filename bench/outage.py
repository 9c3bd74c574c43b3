"""A server that does not answer for ten seconds costs no attempt, and a cancel reaches the agent in time."""

import asyncio
import json
import time
from datetime import datetime
from pathlib import Path

from temporalio.api.enums.v1 import EventType

from bench.figure import Figure
from bench.pace import Pace
from bench.stage import Stage, stage, worker
from clients.temporal.work_orders import WorkOrders
from septet.contracts.order import WorkOrderInput
from septet.errors import SeptetError

OUTAGE_SECONDS = 10.0
CANCEL_TARGET_SECONDS = 5.0
_AGENT_SECONDS = 20
_LOOK_SECONDS = 0.02
_PATIENCE_SECONDS = 60.0


def measure(pace: Pace) -> list[Figure]:
    """Suspend the server under a running agent; then cancel work orders under running agents."""
    return asyncio.run(_measured(pace))


async def _measured(pace: Pace) -> list[Figure]:
    async with stage() as on:
        slow = {**on.environ, "SEPTET_SCRIPTED_SECONDS": str(_AGENT_SECONDS)}
        async with worker(on, slow):
            attempts, agents = await _outage(on)
            cancels = [await _cancel(on, f"wo-cancel-{number}") for number in range(pace.times(5, 2))]
    note = f"server stopped for {OUTAGE_SECONDS:.0f} s while an agent works"
    return [
        Figure("attempts of the step", attempts, "", 1, note=note),
        Figure("agents started for it", agents, "", 1, note=note),
        Figure("cancel until the agent's end", max(cancels), "s", CANCEL_TARGET_SECONDS,
               note=f"the slowest of {len(cancels)}"),
    ]  # fmt: skip


async def _outage(on: Stage) -> tuple[int, int]:
    """Return the attempts of the first step and the agents started for it."""
    await _start(on, "wo-outage")
    on.server.suspend()
    await asyncio.sleep(OUTAGE_SECONDS)
    on.server.resume()
    attempts = await _attempts(on, "wo-outage")
    return attempts, len(list(_runs(on, "wo-outage").glob("1-*")))


async def _attempts(on: Stage, order_id: str) -> int:
    """Wait until the first step is recorded as completed, and return the number of its last attempt."""
    first, attempts = 0, 0
    async with asyncio.timeout(_PATIENCE_SECONDS):
        async for event in on.client.get_workflow_handle(order_id).fetch_history_events(wait_new_event=True):
            scheduled = event.activity_task_scheduled_event_attributes
            started = event.activity_task_started_event_attributes
            if scheduled.activity_type.name == "classify_issue":
                first = event.event_id
            elif first and started.scheduled_event_id == first:
                attempts = started.attempt
            elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED and attempts:
                return attempts
    raise SeptetError(f"The first step of {order_id} was not completed.")


async def _cancel(on: Stage, order_id: str) -> float:
    """Return the seconds between the request and the agent's end."""
    runs = await _start(on, order_id)
    asked = time.time()
    await WorkOrders(on.client).cancel_and_wait(order_id)
    record = json.loads((await _file(runs, "exit.json")).read_bytes())
    return datetime.fromisoformat(record["ended_at"]).timestamp() - asked


async def _start(on: Stage, order_id: str) -> Path:
    """Start a work order and return its runs, once its first agent works."""
    origin = on.settings.state_dir / "origin.git"
    if not await asyncio.to_thread(origin.exists):
        from bench.repository import make_repository

        await asyncio.to_thread(make_repository, origin, 20, 0, on.settings.git_env)
    order = WorkOrderInput(repository=str(origin), title="Tell that it is done", agent="scripted")
    await WorkOrders(on.client).start(order, order_id)
    await _file(_runs(on, order_id), "stdout.jsonl")
    return _runs(on, order_id)


def _runs(on: Stage, order_id: str) -> Path:
    return on.settings.state_dir / "runs" / order_id


async def _file(runs: Path, name: str) -> Path:
    """Wait for a file of the first run."""
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while not (found := list(runs.glob(f"1-*/{name}"))):  # noqa: ASYNC110, ASYNC240 -- another process makes it
            await asyncio.sleep(_LOOK_SECONDS)
    return found[0]
