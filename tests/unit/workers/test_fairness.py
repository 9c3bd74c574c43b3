"""The order of a host's slots on Septet's servers: best score, then late steps, then fair shares of projects."""

import os
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from fakes.septet_command import free_ports
from fakes.waiting import wait_until
from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from septet.contracts.names import Step
from septet.contracts.task import Task
from septet.settings import Settings
from septet.state import StateDir
from workers.connection.connection import connect
from workers.server.ports import Ports
from workers.server.server import DYNAMIC_CONFIG, embedded_server
from workflows.wire.policies import priority_of

ROOT = Path(__file__).parents[3]
QUEUE = "slots"


async def _queue(client: Client, task: Task, count: int, step: Step = Step.CREATE_PULL_REQUEST) -> None:
    for number in range(count):
        await _queue_step(client, task.model_copy(update={"id": f"{task.id}-{step.number}-{number}"}), step)


async def _queue_step(client: Client, task: Task, step: Step) -> None:
    await client.start_activity(
        "turn",
        args=[task, step],
        id=f"{task.id}-{step}",
        task_queue=QUEUE,
        start_to_close_timeout=timedelta(minutes=1),
        priority=priority_of(task, step),
    )


async def _turns(client: Client, count: int) -> list[tuple[str, Step]]:
    """Return projects and steps in the order of one slot; the end of a step queues the next step."""
    turns: list[tuple[str, Step]] = []

    @activity.defn(name="turn")
    async def turn(task: Task, step: Step) -> None:
        turns.append((task.project, step))
        for following in list(Step)[step.number : step.number + 1]:
            await _queue_step(client, task, following)

    async with Worker(client, task_queue=QUEUE, activities=[turn], max_concurrent_activities=1):
        await wait_until(lambda: len(turns) >= count)
    return turns[:count]


async def _order_of_turns(client: Client, count: int) -> str:
    return "".join(project for project, _ in await _turns(client, count))


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    state = StateDir(tmp_path / "state")
    async with embedded_server(state, Ports(*free_ports(2)), {"PATH": os.environ["PATH"]}):
        yield await connect(Settings(state_dir=state.root, environ={}))


async def test_the_better_score_goes_before_fairness(client: Client) -> None:
    """All steps with a better score come before the others, whatever their project is."""
    await _queue(client, Task(id="wo-b", project="b"), 10)
    await _queue(client, Task(id="wo-a", project="a", score=9), 10)
    assert await _order_of_turns(client, 20) == "a" * 10 + "b" * 10


@pytest.mark.parametrize(
    ("first", "counted", "turns"),
    [(Step.CLASSIFY_ISSUE, Step.CLASSIFY_ISSUE, 40), (Step.GENERATE_BRANCH, Step.IMPLEMENT_PLAN, 30)],
    ids=["at once", "plans approved at once"],
)
async def test_what_has_begun_is_finished_first(client: Client, first: Step, counted: Step, turns: int) -> None:
    """The first of thirty work orders reaches its pull request before a third of the others has started."""
    await _queue(client, Task(id="wo-a", project="a"), 30, first)
    steps = [step for _, step in await _turns(client, turns)]
    assert Step.CREATE_PULL_REQUEST in steps
    assert steps.count(counted) < 30 / 3


async def test_a_project_keeps_its_share_beside_one_that_has_begun_much(client: Client) -> None:
    """A project gets about half of the turns beside a project with many started work orders."""
    for step in (Step.IMPLEMENT_PLAN, Step.CLASSIFY_ISSUE):
        await _queue(client, Task(id="wo-a", project="a"), 60, step)
    await _queue(client, Task(id="wo-b", project="b"), 40, Step.CLASSIFY_ISSUE)
    turns = await _order_of_turns(client, 200)
    assert 0.4 <= turns.count("b") / len(turns) <= 0.7


def test_a_projects_key_is_what_the_server_takes() -> None:
    """The fairness keys of a project with a long name have at most 64 bytes."""
    task = Task(id="wo-a", project="é" * 100)
    keys = {priority_of(task, step).fairness_key or "" for step in Step}
    assert len(keys) == 4
    assert max(len(key.encode()) for key in keys) <= 64


def test_the_compose_files_server_is_set_as_the_embedded_one() -> None:
    """The server of the compose file has the dynamic configuration of the embedded server."""
    told = yaml.safe_load((ROOT / "docker/temporal/dynamic.yaml").read_text(encoding="utf-8"))
    assert {key: value for key, (only,) in told.items() for value in [only["value"]]} == dict(DYNAMIC_CONFIG)
