"""Agents in the lanes of pipelines whose work orders are closed."""

import asyncio
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes.agent_lab import Lab
from fakes.around import Call, around
from fakes.waiting import wait_until
from fakes.waiting_agents import waiting_agents
from temporalio.client import Client, DescribeWorkflowInput, WorkflowHandle

from septet.agents.clis.adapter import Turn
from septet.agents.runs.records import Payer, RunKey
from septet.agents.turns.request import TurnRequest
from septet.agents.turns.turn_runs import TurnResult
from septet.agents.turns.warm import warm_orders
from workers.recovery.strays import BusyOrders, end_strays

pytestmark = pytest.mark.asyncio(loop_scope="session")


def turn_in(lane: str, lab: Lab, order_id: str, run_id: str | None = None) -> TurnRequest:
    """Return a turn of a work order in a lane; its agent works until a file named like the work order appears."""
    request = lab.request(turn=Turn(f"{order_id}\n", lab.worktree))
    return replace(request, key=RunKey(order_id, run_id or "run-1", "5"), order_id=lane)


async def started(client: Client, order_id: str) -> WorkflowHandle[Any, Any]:
    """Start a work order on a queue without a worker."""
    return await client.start_workflow("WorkOrder", id=order_id, task_queue="nobody")


@pytest.mark.law
async def test_who_has_the_lane_by_now_is_left_alone(client: Client, tmp_path: Path) -> None:
    """While a look queries the closed work order, its agent ends and another agent starts: the look leaves the other."""
    closed = await started(client, f"wo-{uuid.uuid4().hex[:8]}")
    await closed.terminate()
    with waiting_agents(tmp_path) as (host, lab):
        lab.agent("init(); wait_for('../' + prompt.strip()); result('done')")
        runs, lane = host.runs, "pl-1-executor-1"
        first = asyncio.create_task(lab.run_turn(turn_in(lane, lab, closed.id, closed.first_execution_run_id)))
        await wait_until(lambda: runs.living(lane))
        second: list[asyncio.Task[TurnResult]] = []

        async def pass_on() -> None:
            (tmp_path / closed.id).touch()
            await first
            second.append(asyncio.create_task(lab.run_turn(turn_in(lane, lab, "wo-2"))))
            await lab.said_anew("system/init")

        async def describe(really: Call, workflow: DescribeWorkflowInput) -> Any:
            await pass_on()
            return await really(workflow)

        await end_strays(around(client, describe_workflow=describe), host, BusyOrders(runs))
        (tmp_path / "wo-2").touch()
        turn = await second[0]
        assert (turn.outcome.text, turn.agent_starts) == ("done", 1)


async def test_the_agent_of_a_run_that_was_reset_ends_and_that_of_the_next_run_goes_on(
    client: Client, tmp_path: Path
) -> None:
    """The next run may be on another host: only this look ends the agent here, and notes its cost."""
    before = await started(client, f"wo-{uuid.uuid4().hex[:8]}")
    await before.terminate()
    after = await started(client, before.id)
    with waiting_agents(tmp_path) as (host, lab):
        lab.agent("init(); wait_for('../' + prompt.strip()); result('done')")
        runs = host.runs
        turn = turn_in(before.id, lab, before.id, before.first_execution_run_id)
        payer = Payer("o/r", before.id, "build_plan", "scripted")
        first = asyncio.create_task(lab.run_turn(replace(turn, payer=payer)))
        await lab.said_anew("system/init")
        first.cancel()  # the server has forgotten the attempt; its agent is left to the next run
        await asyncio.wait([first])
        assert await end_strays(client, host, BusyOrders(runs)) == [runs.of(before.id)[0].name]
        ((_, note),) = host.cost_notes.take()  # no attempt reports its cost
        assert (note.project, note.order_id, note.use.seconds > 0.0) == ("o/r", before.id, True)
        second = asyncio.create_task(
            lab.run_turn(turn_in(before.id, lab, before.id, after.first_execution_run_id))
        )
        await lab.said_anew("system/init")
        assert await end_strays(client, host, BusyOrders(runs)) == []
        (tmp_path / before.id).touch()
        assert (await second).outcome.text == "done"


async def test_a_process_that_waits_ends_with_its_terminated_pipeline(client: Client, tmp_path: Path) -> None:
    """While the pipeline is open its process waits; after its termination, the next look ends the process."""
    pipeline = await client.start_workflow(
        "Pipeline", id=f"pl-{uuid.uuid4().hex[:12]}", task_queue=f"nobody-{uuid.uuid4().hex}"
    )
    lane = f"{pipeline.id}-planner"
    with waiting_agents(tmp_path) as (host, lab):
        orders = BusyOrders(host.runs)
        await lab.run_turn(replace(lab.warm_turn(1), order_id=lane))
        await end_strays(client, host, orders)
        assert warm_orders(host.runs) == [lane]
        await pipeline.terminate()
        await end_strays(client, host, orders)
        assert warm_orders(host.runs) == []
