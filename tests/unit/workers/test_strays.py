"""What a second Ctrl-C ends."""

from dataclasses import replace
from pathlib import Path

import psutil
from fakes.agent_lab import Lab, agent_of
from fakes.step_lab import settings_of

from activities._room import Host
from septet.agents.supervisors import Supervisors
from septet.agents.warm import warm_orders
from septet.state import StateDir
from workers.strays import end_living


async def test_processes_that_wait_for_a_turn_are_ended_too(tmp_path: Path) -> None:
    """They are no agents at work, and so none of the runs that are named; their sessions are resumed later."""
    (tmp_path / "worktree").mkdir()
    settings = settings_of(tmp_path)
    state = StateDir(settings.state_dir)
    state.prepare()
    supervisors = Supervisors()
    host = Host("host", settings, state, supervisors)
    lab = Lab(tmp_path, replace(host.means, sandbox=host.sandbox))
    (tmp_path / "agent").unlink()
    lab.warm_agent("result(heard)")
    carried = await lab.carry_out(lab.warm_turn(1))
    waits = psutil.Process(agent_of(carried.run))
    assert waits.status() == psutil.STATUS_STOPPED
    assert warm_orders(host.means.runs) == ["wo-1"]
    assert await end_living(host, "a test ends them") == []
    assert warm_orders(host.means.runs) == []
    assert not waits.is_running() or waits.status() == psutil.STATUS_ZOMBIE
    supervisors.close()
