"""Runners and workers of different releases, as containers that are upgraded separately."""

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from fakes.agent_lab import Lab
from fakes.runners import Runner, copy_packages

from septet.agents.runs.folders import Runs
from septet.agents.sandbox.connections import RUNNER_LOCK, await_sweep
from septet.agents.sandbox.supervisors import Supervisors


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    """A runner that a test starts."""
    made = Runner(tmp_path / "state")
    yield made
    made.end()


@pytest.fixture
def served(lab: Lab, runner: Runner) -> Lab:
    """A host whose agents the runner starts, each for many turns."""
    lab.runtime = replace(
        lab.runtime,
        runs=Runs(lab.runtime.runs.root, runner.folder / RUNNER_LOCK),
        supervisors=Supervisors(runner=runner.folder),
    )
    lab.warm_agent("result(heard)")
    return lab


def starts(lab: Lab) -> list[str]:
    """Return the journal's starts of processes, without their turns."""
    return [line for line in lab.journal if line.startswith("start")]


async def test_a_runner_works_on_when_its_files_are_gone(served: Lab, runner: Runner, tmp_path: Path) -> None:
    """A runner imports all that it needs at its start, so that an upgrade of its files costs no agent."""
    runner.packages = copy_packages(tmp_path / "packages")
    process = runner.start()
    await asyncio.to_thread(await_sweep, runner.folder)  # the runner runs when it answers
    assert any(str(runner.packages) in word for word in psutil.Process(process.pid).cmdline())
    shutil.rmtree(runner.packages)
    first = await served.run_turn(served.warm_turn(1))
    second = await served.run_turn(served.warm_turn(2, first.outcome.session_id))
    assert (second.outcome.text, second.recovered_by) == ("Turn 1.;Turn 2.;", None)
    served.agent("init(); result('done')")
    assert (await served.run_turn()).outcome.text == "done"
