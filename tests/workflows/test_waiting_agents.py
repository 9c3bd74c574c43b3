"""Agents that wait in a lane for a turn that will not come."""

import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.agent_lab import Lab
from fakes.step_lab import settings_of
from temporalio.client import Client

from activities._room import Host
from septet.agents.supervisors import Supervisors
from septet.agents.warm import warm_orders
from septet.state import StateDir
from workers.strays import end_strays

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_process_that_waits_ends_with_its_terminated_pipeline(client: Client, tmp_path: Path) -> None:
    """While the pipeline is open it waits; once somebody has terminated it, the next look at the host ends it."""
    (tmp_path / "worktree").mkdir()
    settings = settings_of(tmp_path)
    state = StateDir(settings.state_dir)
    state.prepare()
    supervisors = Supervisors()
    host = Host("host", settings, state, supervisors)
    lab = Lab(tmp_path, replace(host.means, sandbox=host.sandbox))
    (tmp_path / "agent").unlink()
    lab.warm_agent("result(heard)")
    pipeline = await client.start_workflow(
        "Pipeline", id=f"pl-{uuid.uuid4().hex[:12]}", task_queue=f"nobody-{uuid.uuid4().hex}"
    )
    lane = f"{pipeline.id}-planner"
    await lab.carry_out(replace(lab.warm_turn(1), order_id=lane))
    await end_strays(client, host)
    assert warm_orders(host.means.runs) == [lane]
    await pipeline.terminate()
    await end_strays(client, host)
    assert warm_orders(host.means.runs) == []
    supervisors.close()
