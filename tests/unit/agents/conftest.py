"""Fixtures of the tests of agents: supervisors, a host that runs them, and the end of all started processes."""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.agent_lab import Lab
from fakes.guest_paths import guest_paths
from fakes.runners import Runner

from septet.agents.clis.adapter import Machine
from septet.agents.guest.description import World
from septet.agents.guest.paths import NamedPath
from septet.agents.runs.folders import Runs
from septet.agents.sandbox.connections import RUNNER_LOCK, end_agent
from septet.agents.sandbox.sandbox import find_sandbox
from septet.agents.sandbox.supervisors import Supervisors
from septet.agents.turns.follow import Pace
from septet.agents.turns.request import AgentRuntime
from septet.agents.turns.warm import end_warm


@pytest.fixture
def supervisors() -> Iterator[Supervisors]:
    made = Supervisors()
    yield made
    made.close()


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    made = Runner(tmp_path / "state")
    yield made
    made.end()


@pytest.fixture
def served(lab: Lab, runner: Runner) -> Lab:
    runs = Runs(lab.runtime.runs.root, runner.folder / RUNNER_LOCK)
    lab.runtime = replace(lab.runtime, runs=runs, supervisors=Supervisors(runner=runner.folder))
    return lab


@pytest.fixture
def lab(tmp_path: Path, supervisors: Supervisors) -> Iterator[Lab]:
    """A host with a worktree; the fixture ends every agent that a test leaves."""
    (tmp_path / "worktree").mkdir()
    host = Machine(env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    made = Lab(tmp_path, AgentRuntime(Runs(tmp_path / "runs"), supervisors, host, pace=Pace(poll_seconds=0.02)))
    yield made

    async def end_all() -> None:
        for run in made.runtime.runs.of("wo-1"):
            await end_agent(run, "cancelled")
        end_warm(made.runtime.runs, "wo-1")

    asyncio.run(end_all())


@pytest.fixture
def confined(lab: Lab) -> Lab:
    named = tuple(NamedPath.parse(each, lab.root) for each in guest_paths(lab.root))
    lab.runtime = replace(lab.runtime, sandbox=find_sandbox("auto", os.environ, World(Path.home(), named)))
    return lab
