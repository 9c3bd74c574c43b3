"""Agents that wait in a lane for a turn that will not come."""

import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.waiting_agents import waiting_agents
from temporalio.client import Client

from septet.agents.turns.busy_orders import BusyOrders
from septet.agents.turns.warm import warm_orders
from workers.strays import end_strays

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_process_that_waits_ends_with_its_terminated_pipeline(client: Client, tmp_path: Path) -> None:
    """While the pipeline is open it waits; once somebody has terminated it, the next look at the host ends it."""
    pipeline = await client.start_workflow(
        "Pipeline", id=f"pl-{uuid.uuid4().hex[:12]}", task_queue=f"nobody-{uuid.uuid4().hex}"
    )
    lane = f"{pipeline.id}-planner"
    with waiting_agents(tmp_path) as (host, lab):
        orders = BusyOrders(host.runtime.runs)
        await lab.carry_out(replace(lab.warm_turn(1), order_id=lane))
        await end_strays(client, host, orders)
        assert warm_orders(host.runtime.runs) == [lane]
        await pipeline.terminate()
        await end_strays(client, host, orders)
        assert warm_orders(host.runtime.runs) == []
