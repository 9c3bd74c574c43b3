"""Fixtures of the tests of agents: supervisors, a host that runs them, and the end of all started processes."""

import asyncio
import os
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import coverage
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

_MEASURED_PYTHON = """\
    #!{python}
    import coverage, runpy, sys
    sys.argv = [word for word in sys.argv[1:] if not word.startswith("-")]
    measure = coverage.Coverage(data_file={data!r}, data_suffix=True, branch=True, source=["septet"])
    measure.set_option("run:patch", ["_exit"])
    measure.start()
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        measure.stop()
        measure.save()
"""


@pytest.fixture
def python(tmp_path: Path) -> str:
    """The Python that runs supervisors; if coverage is measured, a Python that measures it in them too."""
    measuring = coverage.Coverage.current()
    if measuring is None:
        return sys.executable
    path = tmp_path / "measured-python"
    data = str(measuring.config.data_file)
    path.write_text(textwrap.dedent(_MEASURED_PYTHON.format(python=sys.executable, data=data)), encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def supervisors(python: str) -> Iterator[Supervisors]:
    made = Supervisors(python=python)
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
