"""What the tests of agents share: programs, a host that runs them, and an end for all that was started."""

import asyncio
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import coverage
import pytest

from fakes.agent_programs import agent_program
from septet.agents.adapter import Host, Turn
from septet.agents.attachment import end_agent
from septet.agents.follow import Pace, Progress
from septet.agents.ladder import Carried, carry_out
from septet.agents.launch import Means, Request
from septet.agents.registry import adapter_for
from septet.agents.runs import RunKey, Runs
from septet.agents.supervisors import Supervisors
from septet.contracts.order import Timeouts

_MEASURED_PYTHON = """\
    #!{python}
    import coverage, runpy, sys
    measure = coverage.Coverage(data_file={data!r}, data_suffix=True, branch=True, source=["septet"])
    measure.start()
    try:
        runpy.run_path(sys.argv[-1], run_name="__main__")
    finally:
        measure.stop()
        measure.save()
"""


@pytest.fixture
def python(tmp_path: Path) -> str:
    """The Python for supervisors; where coverage is measured, one that measures it in them too."""
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
    """Supervisors as a worker has them."""
    made = Supervisors(python=python)
    yield made
    made.close()


@dataclass
class Lab:
    """A host on which one work order's agents run."""

    root: Path
    means: Means
    program: str = ""
    progress: list[Progress] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)

    def agent(self, body: str) -> str:
        """Write the agent's program."""
        self.program = agent_program(self.root / "agent", body)
        self.means = replace(self.means, host=replace(self.means.host, programs={"scripted": self.program}))
        return self.program

    def request(self, *, run_id: str = "run-1", activity_id: str = "5", **turn: Any) -> Request:
        """Ask for one turn of the step `implement_plan`."""
        return Request(
            key=RunKey("wo-1", run_id, activity_id),
            order_id="wo-1",
            number=5,
            step="implement_plan",
            adapter=adapter_for("scripted"),
            turn=Turn(**{"prompt": "Work.\n", "worktree": self.root / "worktree", **turn}),
            limits=Timeouts(),
            means=self.means,
        )

    async def carry_out(self, request: Request | None = None) -> Carried:
        """Make one attempt."""

        async def come_back() -> None:
            self.returned.append("returned to the checkpoint")

        return await carry_out(request or self.request(), on_progress=self.progress.append, before_rerun=come_back)

    @property
    def journal(self) -> list[str]:
        """The agents' starts: `start new` or `start resume`."""
        path = self.root / "journal"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@pytest.fixture
def lab(tmp_path: Path, supervisors: Supervisors) -> Iterator[Lab]:
    """A host with a worktree; every agent that a test leaves is ended."""
    (tmp_path / "worktree").mkdir()
    runs = Runs(tmp_path / "runs")
    host = Host(env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    made = Lab(tmp_path, Means(runs, supervisors, host, pace=Pace(look_seconds=0.02)))
    yield made

    async def end_all() -> None:
        for run in runs.of("wo-1"):
            await end_agent(run, "cancelled")

    asyncio.run(end_all())


@pytest.fixture
def wait_until() -> Callable[[Callable[[], object]], Any]:
    """Wait, without end but for ten seconds, until something holds, and return it."""

    async def wait(condition: Callable[[], object]) -> object:
        for _ in range(1000):
            found = condition()
            if found:
                return found
            await asyncio.sleep(0.01)
        pytest.fail("what the test waits for did not come within ten seconds")

    return wait
