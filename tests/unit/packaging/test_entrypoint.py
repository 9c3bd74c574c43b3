"""The container's entry point and its `septet` program: a slot for each replica, and keys from files."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fakes.shell_programs import write_program

DOCKER = Path(__file__).parents[3] / "docker"

SEPTET = """#!{python}
import json, os, sys
state = os.environ["SEPTET_STATE_DIR"]
print(json.dumps({{"argv": sys.argv[1:], "state": os.path.realpath(state), "home": os.environ["HOME"],
                  "key": os.environ.get("A_KEY")}}), flush=True)
sys.stdin.read()
"""


@dataclass
class Machine:
    """A volume and an image whose `septet` prints its start values and runs until its stdin ends."""

    root: Path
    processes: ExitStack
    started: int = field(default=0)

    def __post_init__(self) -> None:
        """Make the image's `septet` and an empty folder of secrets."""
        (self.root / "secrets").mkdir()
        write_program(self.root / "bin" / "septet", SEPTET.format(python=sys.executable))

    def container(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        return self.run([sys.executable, str(DOCKER / "entrypoint.py"), *arguments], variables)

    def run(self, command: list[str], variables: dict[str, str]) -> subprocess.Popen[str]:
        self.started += 1
        own = self.root / f"container-{self.started}"
        own.mkdir()
        env = {
            "PATH": f"{DOCKER / 'bin'}:{self.root / 'bin'}:{os.defpath}",
            "HOME": str(own),
            "SEPTET_VOLUME": str(self.root / "volume"),
            "SEPTET_SECRETS": str(self.root / "secrets"),
            "SEPTET_STATE_DIR": str(own / "state"),
        }
        process = subprocess.Popen(
            command,
            env=env | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.callback(end, process)
        return process

    def slot(self, number: int) -> str:
        return str(self.root / "volume" / "slots" / str(number))


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def told(process: subprocess.Popen[str]) -> dict[str, object]:
    assert process.stdout is not None
    said: dict[str, object] = json.loads(process.stdout.readline())
    return said


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with ExitStack() as processes:
        yield Machine(tmp_path, processes)


def test_replicas_never_share_a_state_directory(machine: Machine) -> None:
    """Containers that start at the same time lease different slots with different homes."""
    containers = [machine.container("worker") for _ in range(3)]
    said = [told(container) for container in containers]
    assert {each["state"] for each in said} == {machine.slot(1), machine.slot(2), machine.slot(3)}
    assert len({each["home"] for each in said}) == len(said)


def test_a_successor_takes_up_the_slot_of_a_killed_container(machine: Machine) -> None:
    """A lease ends with its container, and the next container gets the free slot with its files."""
    first, second = machine.container("worker"), machine.container("worker")
    by_slot = {told(container)["state"]: container for container in (first, second)}
    Path(machine.slot(1), "host-id").write_text("feedbeef\n", encoding="ascii")
    end(by_slot[machine.slot(1)])
    assert told(machine.container("worker"))["state"] == machine.slot(1)
    assert Path(machine.slot(1), "host-id").read_text(encoding="ascii") == "feedbeef\n"


def test_a_runner_shares_the_slot_of_a_worker(machine: Machine) -> None:
    """The first runner has the state directory and home of the first worker, and the second of the second."""
    workers = [told(machine.container("worker")) for _ in range(2)]
    runners = [told(machine.container("runner")) for _ in range(2)]
    assert [(each["state"], each["home"]) for each in runners] == [
        (each["state"], each["home"]) for each in workers
    ]


def test_a_container_that_restarts_gets_a_slot_again(machine: Machine) -> None:
    """A container that restarts gets a slot again, despite the link that its first run left."""
    state = str(machine.root / "state")
    end_of_first = machine.container("worker", SEPTET_STATE_DIR=state)
    told(end_of_first)
    end(end_of_first)
    assert told(machine.container("worker", SEPTET_STATE_DIR=state))["state"] == machine.slot(1)


@pytest.mark.parametrize("arguments", [("show", "wo-1"), ("worker", "--register"), ("worker", "--help")])
def test_commands_that_run_no_agents_lease_nothing(machine: Machine, arguments: tuple[str, ...]) -> None:
    """A command without agents leases no slot."""
    assert told(machine.container(*arguments))["argv"] == list(arguments)
    assert not (machine.root / "volume").exists()


def test_keys_come_from_files(machine: Machine) -> None:
    """A secret's file sets the variable of its name, without the last newline; `docker exec` gets the keys too."""
    (machine.root / "secrets" / "A_KEY").write_text("sk-1\n", encoding="utf-8")
    (machine.root / "secrets" / "README.md").write_text("notes", encoding="utf-8")
    assert told(machine.container("worker"))["key"] == "sk-1"
    said = told(machine.run(["septet", "run", "--wait"], {}))
    assert (said["argv"], said["key"]) == (["run", "--wait"], "sk-1")


def test_a_variable_that_is_set_is_kept(machine: Machine) -> None:
    """A variable of the container comes before a secret's file."""
    (machine.root / "secrets" / "A_KEY").write_text("from file", encoding="utf-8")
    assert told(machine.container("worker", A_KEY="from compose"))["key"] == "from compose"
