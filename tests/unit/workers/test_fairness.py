"""The order of a host's slots on Septet's servers: best score, then late steps, then fair shares of projects.

A free host does not wait a second for work of a full host.
"""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from fakes.septet_command import free_ports
from fakes.waiting import wait_until
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
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
IN_ONE_LOOP = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Slot:
    """A task queue of steps, which one slot serves."""

    client: Client
    queue: str = field(default_factory=lambda: f"slot-{uuid.uuid4().hex[:8]}")

    async def fill(self, task: Task, count: int, step: Step = Step.CREATE_PULL_REQUEST) -> None:
        """Queue a step of `count` work orders."""
        for number in range(count):
            await self._queue(task.model_copy(update={"id": f"{task.id}-{step.number}-{number}"}), step)

    async def _queue(self, task: Task, step: Step) -> None:
        await self.client.start_activity(
            "turn",
            args=[task, step],
            id=f"{self.queue}-{task.id}-{step}",
            task_queue=self.queue,
            start_to_close_timeout=timedelta(minutes=1),
            priority=priority_of(task, step),
        )

    async def serve(self, count: int) -> list[tuple[str, Step]]:
        """Return projects and steps in the order of the slot; the end of a step queues the next step."""
        turns: list[tuple[str, Step]] = []

        @activity.defn(name="turn")
        async def turn(task: Task, step: Step) -> None:
            turns.append((task.project, step))
            for following in list(Step)[step.number : step.number + 1]:
                await self._queue(task, following)

        async with Worker(self.client, task_queue=self.queue, activities=[turn], max_concurrent_activities=1):
            await wait_until(lambda: len(turns) >= count)
        return turns[:count]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    state = StateDir(tmp_path_factory.mktemp("fair") / "state")
    async with embedded_server(state, Ports(*free_ports(2)), {"PATH": os.environ["PATH"]}):
        yield await connect(Settings(state_dir=state.root, environ={}))


@pytest.fixture
def slot(client: Client) -> Slot:
    return Slot(client)


@IN_ONE_LOOP
async def test_the_better_score_goes_before_fairness(slot: Slot) -> None:
    """All steps with a better score come before the others, whatever their project is."""
    await slot.fill(Task(id="wo-b", project="b"), 10)
    await slot.fill(Task(id="wo-a", project="a", score=9), 10)
    assert [project for project, _ in await slot.serve(20)] == ["a"] * 10 + ["b"] * 10


@pytest.mark.parametrize(
    ("first", "counted", "turns"),
    [(Step.CLASSIFY_ISSUE, Step.CLASSIFY_ISSUE, 40), (Step.GENERATE_BRANCH, Step.IMPLEMENT_PLAN, 30)],
    ids=["at once", "plans approved at once"],
)
@IN_ONE_LOOP
async def test_what_has_begun_is_finished_first(slot: Slot, first: Step, counted: Step, turns: int) -> None:
    """The first of thirty work orders reaches its pull request before a third of the others has started."""
    await slot.fill(Task(id="wo-a", project="a"), 30, first)
    steps = [step for _, step in await slot.serve(turns)]
    assert Step.CREATE_PULL_REQUEST in steps
    assert steps.count(counted) < 30 / 3


@IN_ONE_LOOP
async def test_a_project_keeps_its_share_beside_one_that_has_begun_much(slot: Slot) -> None:
    """A project gets about half of the turns beside a project with many started work orders."""
    for step in (Step.IMPLEMENT_PLAN, Step.CLASSIFY_ISSUE):
        await slot.fill(Task(id="wo-a", project="a"), 30, step)
    await slot.fill(Task(id="wo-b", project="b"), 20, Step.CLASSIFY_ISSUE)
    projects = [project for project, _ in await slot.serve(100)]
    assert 0.4 <= projects.count("b") / len(projects) <= 0.7


@IN_ONE_LOOP
async def test_what_is_to_be_tried_again_soon_does_not_wait_for_a_second(client: Client) -> None:
    """Twenty retries with a delay of 50 ms end in less than 15 seconds."""

    @activity.defn(name="pass_on")
    async def pass_on() -> None:
        if activity.info().attempt <= 20:
            raise ApplicationError("full", next_retry_delay=timedelta(milliseconds=50))

    async with Worker(client, task_queue="passes", activities=[pass_on]), asyncio.timeout(15):
        await client.execute_activity(
            pass_on, id="passed", task_queue="passes", start_to_close_timeout=timedelta(minutes=1)
        )


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
