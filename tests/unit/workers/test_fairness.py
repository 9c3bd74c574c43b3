"""A host's slots on the servers that Septet starts: fairly by project, and the best score first."""

import os
from datetime import timedelta
from pathlib import Path

import yaml
from fakes.septet_command import free_ports
from fakes.waiting import wait_until
from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from septet.contracts.task import Task
from septet.settings import Settings
from septet.state import StateDir
from workers.connection import connect
from workers.server import DYNAMIC_CONFIG, Ports, embedded_server
from workflows.policies import priority_of

ROOT = Path(__file__).parents[3]
QUEUE = "slots"


async def _queue(client: Client, task: Task, count: int) -> None:
    for number in range(count):
        await client.start_activity(
            "turn",
            task.project,
            id=f"{task.project}-{task.score}-{number}",
            task_queue=QUEUE,
            start_to_close_timeout=timedelta(minutes=1),
            priority=priority_of(task),
        )


async def _order_of_turns(client: Client, count: int) -> str:
    """Return the projects in the order in which one slot takes them."""
    turns: list[str] = []

    @activity.defn(name="turn")
    async def turn(project: str) -> None:
        turns.append(project)

    async with Worker(client, task_queue=QUEUE, activities=[turn], max_concurrent_activities=1):
        await wait_until(lambda: len(turns) == count)
    return "".join(turns)


async def test_a_project_of_few_does_not_wait_for_one_of_many(tmp_path: Path) -> None:
    """Behind eighty of one project ten of another have every second turn of the one slot."""
    state = StateDir(tmp_path / "state")
    async with embedded_server(state, Ports(*free_ports(2)), {"PATH": os.environ["PATH"]}):
        client = await connect(Settings(state_dir=state.root, environ={}))
        await _queue(client, Task(id="wo-a", project="a"), 80)
        await _queue(client, Task(id="wo-b", project="b"), 10)
        turns = await _order_of_turns(client, 90)
    assert (turns.count("a"), turns.count("b")) == (80, 10)
    assert "ba" * 10 in turns or "ab" * 10 in turns
    assert turns.rindex("b") < 30


async def test_the_better_score_goes_before_fairness(tmp_path: Path) -> None:
    """What has a better score has its turn first, whichever project it is of."""
    state = StateDir(tmp_path / "state")
    async with embedded_server(state, Ports(*free_ports(2)), {"PATH": os.environ["PATH"]}):
        client = await connect(Settings(state_dir=state.root, environ={}))
        await _queue(client, Task(id="wo-b", project="b"), 10)
        await _queue(client, Task(id="wo-a", project="a", score=9), 10)
        turns = await _order_of_turns(client, 20)
    assert turns == "a" * 10 + "b" * 10


def test_the_compose_files_server_is_set_as_the_embedded_one() -> None:
    """What the embedded server is told stands in the file of the compose file's server too."""
    told = yaml.safe_load((ROOT / "docker/temporal/dynamic.yaml").read_text(encoding="utf-8"))
    assert {key: value for key, (only,) in told.items() for value in [only["value"]]} == dict(DYNAMIC_CONFIG)
