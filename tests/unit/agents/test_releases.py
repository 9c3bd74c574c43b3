"""Runners and workers of different releases: they are containers that upgrade apart."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from fakes.agent_lab import Lab
from fakes.guest_kinds import confine
from fakes.runners import Runner, copy_packages
from structlog.testing import capture_logs

from activities.host import Host
from septet.agents.guest.description import World
from septet.agents.runs.folders import Runs
from septet.agents.supervisor.order import HOST_NETWORK_VERSION, ORDER_VERSION
from septet.agents.turns.runner_connection import RUNNER_LOCK, await_sweep, listen
from septet.agents.turns.sandbox import Sandbox
from septet.agents.turns.supervisors import Supervisors
from septet.settings import Settings
from septet.state import StateDir


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


def starts(lab: Lab) -> list[str]:
    """Return the starts of processes, without their turns."""
    return [line for line in lab.journal if line.startswith("start")]


@pytest.mark.needs("bubblewrap")
async def test_what_a_runner_of_an_earlier_release_cannot_give_is_in_the_record(
    served: Lab, runner: Runner
) -> None:
    """A guest that should have a private network has the machine's; with the runner of today it has its own."""
    confine(served)
    served.agent("init(); result('done')")
    runner.start()
    lock = runner.folder / RUNNER_LOCK
    of_today = lock.read_text(encoding="utf-8")
    lock.write_text(json.dumps({"order_version": HOST_NETWORK_VERSION}), encoding="utf-8")
    of_before = await served.carry_out(served.request(activity_id="1"))
    lock.write_text(of_today, encoding="utf-8")
    now = await served.carry_out(served.request(activity_id="2"))
    records = [turn.run.record for turn in (of_before, now)]
    assert [(each.sandbox, each.network) for each in records if each is not None] == [
        ("bwrap", "host"),
        ("bwrap", "own"),
    ]


def test_a_worker_warns_of_a_runner_of_an_earlier_release(tmp_path: Path) -> None:
    """It names the remedy; a runner that is not there is another matter."""
    state = StateDir(tmp_path / "state")
    state.runner.mkdir(parents=True)
    sandbox = Sandbox("/usr/bin/bwrap", world=World(tmp_path))
    host = Host("here", Settings(state_dir=state.root), state, Supervisors(runner=state.runner), sandbox)
    with capture_logs() as logs:
        host.warn_of_older_runner()
        assert logs == []
        with listen(state.runner):
            (state.runner / RUNNER_LOCK).write_text(json.dumps({"order_version": ORDER_VERSION}), encoding="utf-8")
            host.warn_of_older_runner()
            assert logs == []
            (state.runner / RUNNER_LOCK).write_text("{}", encoding="utf-8")
            host.warn_of_older_runner()
    assert [(each["event"], each["log_level"]) for each in logs] == [("guest_on_host_network", "warning")]
    assert "septet runner" in logs[0]["remedy"]


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
