"""Each kind of guest lives in the same world: it reads no key, and reads keys without the sandbox."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.agent_lab import Lab
from fakes.guest_kinds import KINDS, SECRETS, GuestKind, confine, plant_canaries
from fakes.guests import CANARY
from fakes.runners import Runner

from septet.agents.clis.adapter import Machine
from septet.agents.runs.folders import Runs
from septet.agents.sandbox.connections import end_agent
from septet.agents.sandbox.supervisors import Supervisors
from septet.agents.turns.follow import Pace
from septet.agents.turns.request import AgentRuntime
from septet.agents.turns.warm import end_warm


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """Yield a host with canaries; the environment of its supervisors holds a worker's key."""
    (tmp_path / "worktree").mkdir()
    host = Machine(env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    supervisors = Supervisors(env={"WORKER_KEY": CANARY})
    made = Lab(tmp_path, AgentRuntime(Runs(tmp_path / "runs"), supervisors, host, pace=Pace(poll_seconds=0.02)))
    plant_canaries(made)
    yield made

    async def end_all() -> None:
        for run in made.runtime.runs.of("wo-1"):
            await end_agent(run, "cancelled")
        end_warm(made.runtime.runs, "wo-1")

    asyncio.run(end_all())
    supervisors.close()


@pytest.fixture
def runner(lab: Lab) -> Iterator[Runner]:
    made = Runner(lab.root / "state")
    yield made
    made.end()


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_a_guest_of_each_kind_finds_no_key(lab: Lab, runner: Runner, kind: GuestKind) -> None:
    """A confined guest finds no key on the disk or in a process that it sees."""
    confine(lab)
    found = await kind.trial(lab, runner)
    assert CANARY not in found
    assert found.count("No such file or directory") >= len(SECRETS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_an_unconfined_guest_of_each_kind_finds_keys(lab: Lab, runner: Runner, kind: GuestKind) -> None:
    """Without the sandbox the same guest finds the keys, so only the sandbox protects them."""
    assert (await kind.trial(lab, runner)).count(CANARY) >= len(SECRETS)
