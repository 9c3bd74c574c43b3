"""Hosts with their own workers and queues on a Temporal server that others use too."""

import json
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from fakes.repositories import Origin
from fakes.septet_command import Running, Septet, at_work
from fakes.waiting import until, wait_until
from temporalio.client import Client

from workers.watching.announced_agents import announced_agents


@dataclass
class Host:
    septet: Septet
    address: str
    queue: str

    @classmethod
    def beside(cls, served: Septet, root: Path) -> "Host":
        """Return a host with a state directory below `root`, on the server of another machine's `septet up`."""
        host = cls.at(served.address, root)
        host.septet.shares = served
        return host

    @classmethod
    def at(cls, address: str, root: Path) -> "Host":
        """Return a host with a state directory below `root`, on a server."""
        queue = f"septet-{root.name}"
        extra = {"SEPTET_TASK_QUEUE": queue, "TEMPORAL_ADDRESS": address, "SEPTET_MAX_AGENTS": "1"}
        return cls(Septet(root, extra), address, queue)

    @contextmanager
    def worker(self, **extra: str) -> Iterator[Running]:
        with self.septet.serving("worker", **extra) as running:
            yield running

    def start(self, origin: Origin, order: str, **fields: Any) -> str:
        """Start a work order as a person does with Temporal's command line, and return its id."""
        asked = {"repository": str(origin.bare), "title": "Do it", "timeouts": {"heartbeat_seconds": 2}, **fields}
        ended = self.temporal(
            "workflow", "start", "--task-queue", self.queue, "--type", "WorkOrder", "--workflow-id", order,
            "--input", json.dumps(asked),
        )  # fmt: skip
        assert ended.code == 0, ended
        return order

    def temporal(self, *args: str) -> Any:
        return self.septet.run_program("temporal", *args, "--address", self.address)

    def end(self) -> None:
        self.septet.end_all()
        give_up_queue(self.septet, self.address, self.queue)

    def scenario(self, order: str, **steps: Any) -> Path:
        go = self.septet.root / f"{order} may go on"
        told = {step: _waiting(script, go) for step, script in steps.items()}
        self.septet.scenario(order, {"steps": told})
        return go

    def run_of(self, order: str, name: str) -> Path:
        folder = self.septet.state / "runs" / order / name
        until(lambda: b'"status"' in _read(folder / "stdout.jsonl"))
        return folder

    def attempts(self, order: str) -> list[Mapping[str, Any]]:
        lines = _read(self.septet.state / "runs" / order / "attempts.jsonl").split()
        return [json.loads(line) for line in lines]

    def worktree(self, order: str) -> Path:
        return self.septet.state / "workspaces" / order

    def at_work(self, order: str) -> list[psutil.Process]:
        return at_work(self.septet, self.worktree(order))

    def connections(self, run: Path) -> int:
        """Return the number of sockets of a run's supervisor: a listener, and one for each connected attempt."""
        sockets = [each for process in at_work(self.septet, run) for each in process.net_connections(kind="unix")]
        return sum(str(each.laddr) == "control.sock" for each in sockets)

    def rescues(self, order: str) -> list[dict[str, Any]]:
        rescues: list[dict[str, Any]] = self.septet("rescue", "list", order, "--json").json["rescues"]
        return rescues


async def until_agents_are_announced(septet: Septet) -> None:
    """Wait until the server lists the agents of the worker of `septet up`, soon after the worker's start."""
    client = await Client.connect(septet.address)
    await wait_until(lambda: announced_agents(client, "septet"))


def give_up_queue(septet: Septet, address: str, queue: str) -> None:
    """Terminate the open work orders of a queue, which would otherwise disturb others on the server."""
    of_queue = f'TaskQueue="{queue}" AND ExecutionStatus="Running"'

    def is_given_up() -> bool:
        listed = septet.run_program(
            "temporal", "workflow", "list", "--query", of_queue, "-o", "json", "--address", address
        )
        assert listed.code == 0, listed
        left = [row["execution"]["workflowId"] for row in json.loads(listed.out or "[]")]
        for each in left:  # a batch would be refused while another batch runs
            septet.run_program("temporal", "workflow", "terminate", "--workflow-id", each, "--address", address)
        return not left

    until(is_given_up)


@contextmanager
def stopped(worker: Running) -> Iterator[None]:
    worker.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        worker.process.send_signal(signal.SIGCONT)


def _waiting(script: Any, go: Path) -> Any:
    """Return a script, or a list of scripts, with the file to wait for."""
    if isinstance(script, list):
        return [_waiting(one, go) for one in script]
    rest = {key: value for key, value in script.items() if key != "waits"}
    return {"wait_for": str(go), **rest} if "waits" in script else rest


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
