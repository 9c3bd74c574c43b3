"""The Temporal server dies while agents work: the agents continue, and all parts reconnect."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from fakes.repositories import Origin
from fakes.septet_command import Septet, free_port, free_ports
from fakes.shared_server import Host
from fakes.terminal import terminal
from fakes.waiting import until

from septet.contracts.names import Step
from septet.system import processes
from workers.server.server import temporal_program
from workflows.wire.search_attributes import ALL

pytestmark = pytest.mark.recovery

ONCE = [f"{step.number}-{step.value}-1" for step in Step]


def server_pid(septet: Septet) -> int:
    """Return the process id of the embedded server from its state directory."""
    try:
        return int(septet.addresses["server_pid"])
    except FileNotFoundError:
        return 0


def test_up_starts_its_killed_server_again_and_work_orders_go_on(septet: Septet, origin: Origin) -> None:
    """A server killed under two agents is back on the same database; both work orders complete with the same agents."""
    with septet.up() as up:
        host = Host(septet, up.address, "septet")
        waits = host.scenario("wo-waits", implement_plan={"waits": True})
        ends = host.scenario("wo-ends", implement_plan={"waits": True})
        for order in ("wo-waits", "wo-ends"):
            host.start(origin, order, timeouts={})
        for order in ("wo-waits", "wo-ends"):
            host.run_of(order, "5-implement_plan-1")
        before = server_pid(septet)
        os.kill(before, signal.SIGKILL)
        ends.touch()
        until((septet.state / "runs" / "wo-ends" / "5-implement_plan-1" / "exit.json").exists)
        until(lambda: server_pid(septet) not in {0, before})
        until(lambda: any("server_started_again" in line for line in up.errors))
        assert host.at_work("wo-waits")
        waits.touch()
        assert [septet.closed(order)["status"] for order in ("wo-waits", "wo-ends")] == ["completed", "completed"]
        assert [septet.runs(order) for order in ("wo-waits", "wo-ends")] == [ONCE, ONCE]
        assert up.process.poll() is None


def test_up_ends_with_a_message_when_its_server_cannot_be_started_again(septet: Septet) -> None:
    """A server that is dead for good ends `up` with exit code 4, and the error names the server's log."""
    with septet.up() as up:
        database = septet.state / "temporal.db"
        database.rename(septet.root / "temporal.db")
        database.mkdir()
        os.kill(server_pid(septet), signal.SIGKILL)
        assert up.process.wait(60) == 4
        until(lambda: len(up.lines) == 2)
        told = json.loads(up.lines[1])["error"]
    assert "did not answer" in told["message"]
    assert str(septet.state / "server.log") in told["remedy"]
    assert not (septet.state / "server.json").exists()


@contextmanager
def external_server(folder: Path, port: int) -> Iterator[psutil.Process]:
    """Run a Temporal server that Septet did not start, while the block lasts."""
    kinds = {key.name: key.indexed_value_type.name.capitalize() for key in ALL}
    argv = [
        str(temporal_program()),
        *("server", "start-dev", "--ip", "127.0.0.1", "--port", str(port), "--headless", "--log-level", "error"),
        *("--db-filename", str(folder / "server.db")),
        *(part for name, kind in kinds.items() for part in ("--search-attribute", f"{name}={kind}")),
    ]
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    process = processes.start_detached(argv, env=env, log=folder / "server.log")
    try:
        yield psutil.Process(process.pid)
    finally:
        process.kill()
        process.wait(30)


@pytest.fixture
def port() -> int:
    return free_port()


def test_workers_find_an_external_server_again(tmp_path: Path, origin: Origin, port: int) -> None:
    """Results from the time of the dead server arrive once it is back; its absence is reported on stderr."""
    host = Host.at(f"127.0.0.1:{port}", tmp_path / "host")
    go = host.scenario("wo-external", implement_plan={"waits": True})
    with external_server(tmp_path, port) as server:
        until(lambda: host.septet("board", "--json").code == 0)
        with host.worker() as worker:
            host.start(origin, "wo-external", timeouts={})
            host.run_of("wo-external", "5-implement_plan-1")
            server.kill()
            go.touch()
            until((host.septet.state / "runs" / "wo-external" / "5-implement_plan-1" / "exit.json").exists)
            until(lambda: any("retried" in line for line in worker.errors))
            assert len(worker.lines) == 1, "stdout is for the one JSON object"
            assert worker.process.poll() is None
            with external_server(tmp_path, port):
                until(lambda: host.septet("board", "--json").code == 0)
                until(lambda: host.septet("show", "wo-external", "--json").json["task"]["status"] == "completed")
                assert host.septet.runs("wo-external") == ONCE
                assert worker.end(signal.SIGTERM) == 0


def ports() -> tuple[str, ...]:
    """Return options for ports that `septet up` can use again after its end."""
    server, ui, api = map(str, free_ports(3))
    return "--port", server, "--ui-port", ui, "--api-port", api


def test_who_waits_is_told_once_and_goes_on_when_the_server_is_back(septet: Septet, origin: Origin) -> None:
    """`run --wait` keeps its table over the end of `septet up`, reports the absence, and ends with the work order."""
    go, where = septet.root / "go", ports()
    order = septet.scenario("wo-outlasts", {"steps": {"implement_plan": {"wait_for": str(go)}}})
    words = ("run", "--repo", str(origin.bare), "--title", "Outlast it", "--id", order, "--wait")
    with septet.serving("up", *where) as up, terminal(septet, *words) as screen:
        screen.until("implement_plan")
        septet.until_works(order, "5-implement_plan-1")
        assert up.end() == 0
        told = screen.until("has not answered since")
        told += screen.until("wo-outlasts continues when it is back")
        go.touch()
        with septet.beside("up", *where):
            code, rest = screen.end()
    assert code == 0, rest
    assert "pull request  file://" in rest
    assert "sdk_core" not in told + rest
    assert septet.runs(order) == ONCE
