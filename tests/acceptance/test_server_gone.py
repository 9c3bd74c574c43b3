"""The Temporal server dies while agents work: the agents continue, and all parts reconnect."""

import json
import os
import signal

import pytest
from fakes.repositories import Origin
from fakes.septet_command import ONCE, Septet
from fakes.shared_server import Host
from fakes.waiting import until

pytestmark = pytest.mark.recovery


def server_pid(septet: Septet) -> int:
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
