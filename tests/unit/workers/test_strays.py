"""The processes that a second Ctrl-C ends."""

from pathlib import Path

import psutil
import pytest
from fakes.agent_lab import agent_of
from fakes.waiting_agents import waiting_agents

from septet.agents.turns.warm import warm_orders
from workers.recovery.strays import end_living

pytestmark = pytest.mark.law


async def test_processes_that_wait_for_a_turn_are_ended_too(tmp_path: Path) -> None:
    """A process that waits for its next turn is ended and not named: it is no agent at work."""
    with waiting_agents(tmp_path) as (host, lab):
        carried = await lab.run_turn(lab.warm_turn(1))
        waits = psutil.Process(agent_of(carried.run))
        assert waits.status() == psutil.STATUS_STOPPED
        assert warm_orders(host.runs) == ["wo-1"]
        assert await end_living(host, "a test ends them") == []
        assert warm_orders(host.runs) == []
        assert not waits.is_running() or waits.status() == psutil.STATUS_ZOMBIE
