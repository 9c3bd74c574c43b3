import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from fakes.repositories import Origin
from fakes.sealed import write_keys
from fakes.septet_command import Septet, free_port
from fakes.shared_server import Host
from fakes.shell_programs import write_program
from fakes.waiting import until

from workflows.wire.search_attributes import ALL

pytestmark = pytest.mark.faces

HEALTH = Path(__file__).parents[2] / "docker" / "health.py"


def test_register_makes_the_namespace_that_a_server_lacks(served: Septet, septet: Septet, origin: Origin) -> None:
    """On a server without the namespace, as of `temporalio/server`, one command creates it and its search attributes.

    A second call creates nothing, and work orders run in the namespace.
    """
    agents = Septet(septet.root, {"TEMPORAL_NAMESPACE": "agents", "TEMPORAL_ADDRESS": served.address})
    without = agents("worker", "--json")
    assert (without.code, without.json["error"]["type"]) == (1, "Preflight")
    assert "septet worker --register" in without.json["error"]["remedy"]
    registered = agents("worker", "--register", "--json").json
    assert (registered["namespace"], registered["namespace_created"]) == ("agents", True)
    assert set(registered["registered"]) == {key.name for key in ALL}
    assert agents("worker", "--register").out == "All search attributes are registered.\n"
    with agents.serving("worker"):
        done = agents("run", "--repo", origin.bare, "--title", "T", "--wait", "--json")
        assert done.json["task"]["status"] == "completed"


def test_a_worker_with_other_seal_keys_than_the_fleet_does_not_start(
    served: Septet, origin: Origin, tmp_path: Path
) -> None:
    """A worker with other keys would fail each task."""
    host = Host.beside(served, tmp_path / "host")
    fleet, stranger = (
        Septet(
            tmp_path / key,
            {**host.septet.extra, "SEPTET_SEAL_KEYS_FILE": str(write_keys(tmp_path / f"{key}.keys", key))},
        )
        for key in ("k1", "k2")
    )
    with fleet.serving("worker"):
        assert fleet("create", "--repo", origin.bare, "--title", "T", "--id", "wo-of-k1", "--json").code == 0
        until(lambda: "wo-of-k1" in fleet("list", "--json").out)
        refused = stranger("worker", "--json")
        assert (refused.code, refused.error["type"]) == (1, "Preflight"), refused
        assert "k1 (wo-of-k1)" in refused.error["message"]
        assert fleet("cancel", "wo-of-k1", "--json").code == 0


def test_an_error_that_ends_a_worker_is_a_line_of_its_log(septet: Septet) -> None:
    """The JSON log has type, message and remedy; a terminal and `--json` show the error as always."""
    nowhere = ("worker", "--address", f"127.0.0.1:{free_port()}")
    ended = septet(*nowhere)
    (line,) = ended.err.splitlines()
    event = json.loads(line)
    assert (ended.code, event["event"], event["type"]) == (4, "ended_by_error", "ServerNotReached")
    assert event["remedy"]
    assert septet(*nowhere, "--json").json["error"]["type"] == "ServerNotReached"
    console = Septet(septet.root, {"SEPTET_LOG_FORMAT": "console"})
    assert console(*nowhere).err.startswith("Error: No Temporal server answers at ")


def test_the_health_check_of_a_container_sees_the_worker_whenever_it_asks(served: Septet, septet: Septet) -> None:
    """A versioned worker that the server knows is healthy at each check; an ended worker is not."""
    asked = partial(subprocess.run, [sys.executable, HEALTH], env=septet.env, check=False)
    assert asked().returncode == 1
    with septet.serving("worker", "--address", served.address, SEPTET_TASK_QUEUE="septet-health") as worker:
        until(lambda: asked().returncode == 0)
        assert [asked().returncode for _ in range(10)] == [0] * 10
        assert worker.end(signal.SIGTERM) == 0
    assert asked().returncode == 1


@pytest.mark.parametrize(
    ("key", "age"), [("looked_at", timedelta(seconds=30)), ("polled_at", timedelta(minutes=3))]
)
def test_a_worker_whose_last_word_of_the_server_is_old_is_not_healthy(
    tmp_path: Path, key: str, age: timedelta
) -> None:
    """A worker that does not reach the server is unhealthy, and so is a worker whose polls the server does not see."""
    now = datetime.now(UTC)
    seen = {"looked_at": now.isoformat(), "polled_at": now.isoformat()}
    file = tmp_path / "health.json"
    asked = partial(subprocess.run, [sys.executable, HEALTH], env={"SEPTET_STATE_DIR": str(tmp_path)}, check=False)
    file.write_text(json.dumps(seen), encoding="utf-8")
    assert asked().returncode == 0
    file.write_text(json.dumps({**seen, key: (now - age).isoformat()}), encoding="utf-8")
    assert asked().returncode == 1


def test_a_worker_is_alive_while_its_server_is_not_and_dead_once_its_process_stands_still(septet: Septet) -> None:
    """An outage restarts no worker; a process that stands still is restarted."""
    health = septet.state / "health.json"

    def is_alive_after_an_old_sign() -> bool:
        os.utime(health, (0, 0))
        return until(lambda: health.stat().st_mtime > 0) and asked("--alive") == 0

    def asked(*options: str) -> int:
        return subprocess.run([sys.executable, HEALTH, *options], env=septet.env, check=False).returncode

    assert asked("--alive") == 0  # a worker that has not reached the server yet waits for it
    with septet.up() as up:
        until(health.exists)
        server = septet.addresses["server_pid"]
        os.kill(server, signal.SIGSTOP)
        try:
            assert is_alive_after_an_old_sign()
            up.process.send_signal(signal.SIGSTOP)
            try:
                os.utime(health, (0, 0))
                assert asked("--alive") == 1
            finally:
                up.process.send_signal(signal.SIGCONT)
        finally:
            os.kill(server, signal.SIGCONT)


def failing_bubblewrap(septet: Septet) -> str:
    program = write_program(septet.root / "bin" / "bwrap", "#!/bin/sh\necho 'bwrap: no' >&2\nexit 1\n")
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.parametrize("command", ["worker", "up", "demo"])
def test_nothing_starts_without_the_sandbox_that_is_demanded(served: Septet, septet: Septet, command: str) -> None:
    """If bubblewrap fails, `bwrap` of a setting or an option ends the command with the cause and the remedy."""
    words = {
        "worker": ("--address", served.address),
        "up": ("--sandbox", "bwrap", "--port", str(free_port())),
        "demo": ("--sandbox", "bwrap"),
    }
    variable = {"SEPTET_SANDBOX": "bwrap"} if command == "worker" else {}
    machine = Septet(septet.root, {"PATH": failing_bubblewrap(septet), **variable})
    ended = machine(command, *words[command], "--json")
    assert (ended.code, ended.error["type"]) == (1, "Sandbox"), ended
    assert "cannot make a sandbox here: bwrap: no" in ended.error["message"]
    assert ended.error["remedy"]


def test_a_worker_without_a_sandbox_says_so_in_its_log(served: Septet, septet: Septet) -> None:
    """`auto` serves although bubblewrap fails; the log and doctor say that agents run unconfined, and why."""
    path = failing_bubblewrap(septet)
    with septet.serving("worker", "--address", served.address, PATH=path, SEPTET_LOG_FORMAT="json") as worker:
        assert worker.ready["ready"] is True
        assert worker.end(signal.SIGTERM) == 0
    told = [json.loads(line) for line in worker.errors if '"unconfined"' in line]
    assert "cannot make a sandbox here: bwrap: no" in told[0]["reason"]
    doctor = Septet(septet.root, {"PATH": path})("doctor", "--address", served.address, "--json")
    check = next(check for check in doctor.json["checks"] if check["name"] == "sandbox")
    assert (check["status"], "unconfined" in check["message"]) == ("warning", True)
