"""Runners and workers of different releases: they are containers that upgrade apart."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from fakes.agent_lab import Lab
from fakes.runners import WHEELS, Runner, copy_packages, unpack_release

from septet.agents.runs.folders import Runs
from septet.agents.turns.runner_connection import RUNNER_LOCK, await_sweep
from septet.agents.turns.supervisors import Supervisors

WORKER_OF_0_1 = Path(__file__).parents[2] / "fakes" / "attempting_of_0_1.py"


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    """A runner that a test starts."""
    made = Runner(tmp_path / "state")
    yield made
    made.end()


@pytest.fixture
def served(lab: Lab, runner: Runner) -> Lab:
    """A host whose agents the runner starts, each of them for many turns."""
    lab.runtime = replace(
        lab.runtime,
        runs=Runs(lab.runtime.runs.root, runner.folder / RUNNER_LOCK),
        supervisors=Supervisors(runner=runner.folder),
    )
    lab.warm_agent("result(heard)")
    return lab


@pytest.fixture(params=WHEELS, ids=lambda wheel: wheel.name.split("-")[1])
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An earlier release, unpacked."""
    return unpack_release(request.param, tmp_path / "release")


def starts(lab: Lab) -> list[str]:
    """Return the starts of processes, without their turns."""
    return [line for line in lab.journal if line.startswith("start")]


async def carry_out_by(
    release: Path, lab: Lab, runner: Runner, number: int, *session: str
) -> tuple[str, str, str | None]:
    """Carry one turn out by a worker's process of an earlier release."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *(str(WORKER_OF_0_1), str(lab.root), str(lab.program), str(runner.folder), str(number), *session),
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(release)},
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await process.communicate()
    text, session_id, recovered_by = json.loads(printed)
    return text, session_id, recovered_by


async def test_a_runner_of_an_earlier_release_starts_the_agents_of_today(
    served: Lab, runner: Runner, release: Path
) -> None:
    """It gets orders that it reads: one process serves turns, and the next one is started for an agent of its own."""
    runner.packages = release
    runner.start()
    first = await served.carry_out(served.warm_turn(1))
    second = await served.carry_out(served.warm_turn(2, first.outcome.session_id))
    assert (second.outcome.text, second.recovered_by) == ("Turn 1.;Turn 2.;", None)
    assert starts(served) == ["start new"]
    served.agent("init(); result('done')")
    assert (await served.carry_out()).outcome.text == "done"
    assert starts(served) == ["start new", "start new"]


async def test_the_runner_of_today_starts_the_agents_of_an_earlier_release(
    served: Lab, runner: Runner, release: Path
) -> None:
    """Workers of both releases take turns with one process, whose orders come in either form."""
    runner.start()
    text, session_id, recovered_by = await carry_out_by(release, served, runner, 1)
    assert (text, recovered_by) == ("Turn 1.;", None)
    second = await served.carry_out(served.warm_turn(2, session_id))
    assert (second.outcome.text, second.recovered_by) == ("Turn 1.;Turn 2.;", None)
    text, _, recovered_by = await carry_out_by(release, served, runner, 3, session_id)
    assert (text, recovered_by) == ("Turn 1.;Turn 2.;Turn 3.;", None)
    assert starts(served) == ["start new"]


async def test_a_worker_of_an_earlier_release_goes_on_with_a_process_of_today(
    served: Lab, runner: Runner, release: Path
) -> None:
    """After a step back to it, the process that today's worker started serves its turns."""
    runner.start()
    first = await served.carry_out(served.warm_turn(1))
    text, _, recovered_by = await carry_out_by(release, served, runner, 2, first.outcome.session_id or "")
    assert (text, recovered_by) == ("Turn 1.;Turn 2.;", None)
    assert starts(served) == ["start new"]


async def test_a_runner_works_on_when_its_files_are_gone(served: Lab, runner: Runner, tmp_path: Path) -> None:
    """All that it needs is imported when it starts, so an upgrade under its feet costs no agent."""
    runner.packages = copy_packages(tmp_path / "packages")
    process = runner.start()
    await asyncio.to_thread(await_sweep, runner.folder)  # it has come up when it answers
    assert any(str(runner.packages) in word for word in psutil.Process(process.pid).cmdline())
    shutil.rmtree(runner.packages)
    first = await served.carry_out(served.warm_turn(1))
    second = await served.carry_out(served.warm_turn(2, first.outcome.session_id))
    assert (second.outcome.text, second.recovered_by) == ("Turn 1.;Turn 2.;", None)
    served.agent("init(); result('done')")
    assert (await served.carry_out()).outcome.text == "done"
