import json
import re
import signal

import psutil
import pytest
from fakes.repositories import Origin
from fakes.septet_command import ONCE, WITHIN_SECONDS, Septet, at_work, free_ports
from fakes.shared_server import Host
from fakes.terminal import terminal
from fakes.waiting import until

pytestmark = pytest.mark.recovery


def start(septet: Septet, origin: Origin, order: str, **script: object) -> str:
    septet.start(origin, order, build_plan=script)
    septet.until_works(order, "2-build_plan-1")
    return order


@pytest.mark.law
def test_a_killed_up_goes_on_where_it_was_and_starts_no_agent_twice(septet: Septet, origin: Origin) -> None:
    """`up` that is killed during an agent's work and started again takes the step over at once and adopts the agent."""
    gate = septet.state.parent / "gate"
    with septet.up() as first:
        order = start(septet, origin, "wo-killed", wait_for=str(gate))
        first.kill()
        with septet.up():
            gate.touch()
            task = septet.closed(order)
            history = septet.temporal("workflow", "show", "--workflow-id", order, "--output", "json").out
    assert task["status"] == "completed"
    assert '"WorkerGone"' in history
    recovered = {row["step"]: row["recovered_by"] for row in task["steps"]}
    assert recovered["build_plan"] in {"adopt", "read"}
    assert septet.runs(order) == ONCE


def test_without_a_worker_everybody_is_told(septet: Septet, origin: Origin) -> None:
    """After a kill of `up` its server lives on: each command reports the missing worker and shows the finished steps."""
    with septet.up() as first:
        order = start(septet, origin, "wo-left", wait_for=str(septet.root / "never"))
        assert septet("show", order, "--json").json["waiting_for"] is None
        first.kill()
        told = "No worker runs, so no further step begins. Start one: septet up"
        left = septet("show", order, "--json").json
        assert left["waiting_for"] == told
        assert [row["step"] for row in left["task"]["steps"]] == ["classify_issue"]
        assert told in septet("show", order).out
        assert told in septet("board").out
        assert told in septet("run", "--repo", origin.bare, "--title", "Another").out


@pytest.mark.parametrize("command", ["up", "demo"])
def test_a_signal_before_it_is_ready_leaves_no_server(septet: Septet, command: str) -> None:
    """SIGTERM in the first moments ends the new server too, and a second SIGTERM changes nothing."""
    options = zip(("--port", "--ui-port", "--api-port"), map(str, free_ports(3)), strict=True)
    ports = [part for pair in options for part in pair] if command == "up" else []
    with septet.started(command, *ports, "--json") as process:
        server_file = until(lambda: next(iter(septet.state.rglob("server.json")), None))
        server = json.loads(server_file.read_text(encoding="utf-8"))["server_pid"]
        process.terminate()
        process.terminate()
        assert process.wait(WITHIN_SECONDS) == 130
    assert not psutil.pid_exists(server)
    assert not server_file.exists()
    assert septet.processes() == []


def test_one_state_directory_has_one_up(served: Septet) -> None:
    """A second `up` is refused and names the first."""
    second = served("up", "--port", "1", "--ui-port", "2", "--json")
    assert second.code == 6
    assert str(served.addresses["pid"]) in second.error["message"]
    assert served.address in second.error["message"]


@pytest.mark.law
def test_ctrl_c_leaves_the_agents_of_an_up_alive(septet: Septet, origin: Origin) -> None:
    """SIGINT ends server and worker and names the living agents; the next `up` continues with them."""
    gate = septet.state.parent / "gate"
    with septet.up() as first:
        told = septet.addresses
        assert (told["address"], told["pid"]) == (first.address, first.process.pid)
        order = start(septet, origin, "wo-lives", wait_for=str(gate))
        assert first.end(signal.SIGINT) == 0
        (living,) = until(lambda: [line for line in first.errors if "keeps running" in line])
        assert f"{order}, step build_plan" in living
        until(lambda: any(f"`septet cancel {order}`" in line for line in first.errors))
        assert len(first.lines) == 1
        assert any("result_text_extracted" in line for line in first.errors)
        assert not psutil.pid_exists(told["server_pid"])
        assert not (septet.state / "server.json").exists()
        assert at_work(septet, septet.state / "workspaces" / order)
        with septet.up():
            gate.touch()
            assert septet.closed(order)["status"] == "completed"
    assert septet.runs(order) == ONCE


@pytest.mark.parametrize("ignored", [False, True])
def test_a_terminal_that_closes_ends_a_program_as_ctrl_c_does(
    served: Septet, host: Host, *, ignored: bool
) -> None:
    """SIGHUP ends what serves; under `nohup`, which ignores SIGHUP, the program continues."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
    try:
        with host.worker() as running:
            running.process.send_signal(signal.SIGHUP)
            if ignored:
                assert served("list", "--json").code == 0
                assert running.process.poll() is None
            else:
                assert running.process.wait(WITHIN_SECONDS) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.law
def test_a_second_ctrl_c_ends_the_agents_with_a_rescue(septet: Septet, origin: Origin) -> None:
    """A second SIGINT ends the agent and keeps its work; the next `up` resumes the session."""
    gate = septet.state.parent / "gate"
    with septet.up() as first:
        order = start(septet, origin, "wo-twice", wait_for=str(gate))
        first.process.send_signal(signal.SIGINT)
        until(lambda: [line for line in first.errors if "Ctrl-C again" in line])
        first.process.send_signal(signal.SIGINT)
        assert first.process.wait(WITHIN_SECONDS) == 0
        until(lambda: [line for line in first.errors if "2-build_plan-1 was stopped" in line])
        assert not any("keeps running" in line for line in first.errors)
        assert not at_work(septet, septet.state / "workspaces" / order)
        gate.touch()
        with septet.up():
            task = septet.closed(order)
    assert task["status"] == "completed"
    assert {row["step"]: row["recovered_by"] for row in task["steps"]}["build_plan"] == "resume"


def test_a_taken_port_is_refused_with_the_option_that_names_another(served: Septet, septet: Septet) -> None:
    """A taken port is a usage error whose remedy is --port."""
    ended = septet("up", "--port", served.address.rpartition(":")[2], "--json")
    assert ended.code == 2
    assert re.search(r"add --port \d+ --ui-port \d+ --api-port \d+ to the command\.$", ended.error["remedy"])
    holder = served.addresses["server_pid"]
    assert f"(process {holder})" in ended.error["message"]


def test_up_says_what_becomes_of_work_orders_and_nothing_else(septet: Septet, origin: Origin) -> None:
    """Without `--json` an `up` prints its addresses, and a line for each work order that begins; no logs."""
    pairs = zip(("--port", "--ui-port", "--api-port"), map(str, free_ports(3)), strict=True)
    ports = [part for pair in pairs for part in pair]
    gate = septet.state.parent / "gate"
    order = septet.scenario("wo-said", {"steps": {"create_pull_request": {"wait_for": str(gate)}}})
    try:
        with terminal(septet, "up", *ports) as up:
            up.until("Ctrl-C stops")
            assert septet("run", origin.bare, "--title", "Say goodbye", "--id", order, "--json").code == 0
            told = up.until("wo-said is running: Say goodbye")
            assert "[info" not in told
            septet.until_works(order, "7-create_pull_request-1")
            up.interrupt()
            code, said = up.end()
            assert code == 0
            words = " ".join(said.split())
            assert f"Continue with: SEPTET_STATE_DIR={septet.state}" in words
            assert " --api-port " in words.partition("Continue with: ")[2]
    finally:
        septet.end_all()


@pytest.mark.law
def test_set_up_of_a_killed_worker_runs_again_and_no_agent_does(septet: Septet, origin: Origin) -> None:
    """The next worker finds the workspace, removes the first set-up's files, and pays each agent once."""
    script = "[ ! -e half.txt ] || exit 9\ntouch half.txt\nwhile [ ! -e go.log ]; do sleep 0.05; done\n"
    settings = 'setup = ["sh install.sh"]\n'
    origin.push({".septet/septet.toml": settings, "install.sh": script, ".gitignore": "*.log\n"})
    records = septet.state / "runs" / "wo-set-up" / "setup"
    workspace = septet.state / "workspaces" / "wo-set-up"
    with septet.up() as first:
        septet.start(origin, "wo-set-up")
        until((records / "1" / "stdout.jsonl").exists)
        until((workspace / "half.txt").exists)
        first.kill()
        with septet.up():
            until((records / "2" / "stdout.jsonl").exists)
            (workspace / "go.log").touch()
            task = septet.closed("wo-set-up")
    assert task["status"] == "completed"
    assert septet.runs("wo-set-up") == [*ONCE, "setup"]
    assert sorted(path.name for path in records.iterdir()) == ["1", "2"]
