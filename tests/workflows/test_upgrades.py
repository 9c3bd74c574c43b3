"""A new build of the workers while work orders are under way."""

from __future__ import annotations

import asyncio
import uuid
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from fakes.activities import Doubles, done
from fakes.patched_work_order import PatchedWorkOrder
from fakes.waiting import wait_until
from structlog.testing import capture_logs
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from septet.contracts.names import Step
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import Task
from septet.settings import Settings
from workers.build_id import build_id
from workers.versions import deployment_config, take_what_nobody_serves, take_work_orders
from workflows.pull_request import PullRequestWorkflow
from workflows.work_order import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

ORDER = {"repository": "/app", "title": "Totals are wrong"}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(state_dir=tmp_path, task_queue=f"queue-{uuid.uuid4().hex}")


def named(settings: Settings, build: str) -> Settings:
    return settings.model_copy(update={"build_id": build})


def worker_of(client: Client, settings: Settings, workflow: type, doubles: Doubles) -> Worker:
    """Return a worker of work orders, versioned as the real one; steps are another worker's."""
    open_workspace, *_ = doubles.activities()
    return Worker(
        client,
        task_queue=settings.task_queue,
        workflows=[workflow, PullRequestWorkflow],
        activities=[open_workspace],
        deployment_config=deployment_config(settings),
    )


async def begun(client: Client, settings: Settings) -> WorkflowHandle[Any, Task]:
    return await client.start_workflow(
        "WorkOrder", ORDER, id=f"wo-{uuid.uuid4().hex[:8]}", task_queue=settings.task_queue, result_type=Task
    )


async def builds_of(handle: WorkflowHandle[Any, Task]) -> list[str]:
    """Return the builds that decided about a work order, in order, each once."""
    decided = [
        event.workflow_task_completed_event_attributes.deployment_version.build_id
        async for event in handle.fetch_history_events()
        if event.HasField("workflow_task_completed_event_attributes")
    ]
    return [*dict.fromkeys(decided)]


async def test_a_build_is_called_by_its_release_and_its_workflows(settings: Settings) -> None:
    """Two workers of one installation are one build; `SEPTET_BUILD_ID` gives another name."""
    assert build_id(settings).startswith(f"{version('septet')}-")
    assert build_id(settings) == build_id(settings)
    assert build_id(named(settings, "mine")) == "mine"
    assert deployment_config(settings.model_copy(update={"versioning": False})) is None


async def test_a_work_order_under_way_moves_over_to_the_new_build_and_keeps_its_order(
    client: Client, settings: Settings
) -> None:
    """One that began under the old build ends under the new one in the old order; the next has the new order."""
    begins, go = asyncio.Event(), asyncio.Event()

    async def waits(call: StepCall) -> StepResult:
        begins.set()
        await go.wait()
        return done(call)

    doubles = Doubles(f"{settings.task_queue}-host", {Step.IMPLEMENT_PLAN: [waits, done]})
    old, new = named(settings, "1"), named(settings, "2")
    async with asyncio.timeout(60):
        async with (
            Worker(client, task_queue=doubles.task_queue, activities=doubles.activities()),
            worker_of(client, old, WorkOrder, doubles),
        ):
            await take_work_orders(client, old, sole=False)
            first = await begun(client, settings)
            await begins.wait()
            async with worker_of(client, new, PatchedWorkOrder, doubles):
                await take_work_orders(client, new, sole=True)
                second = await begun(client, settings)
                assert (await second.result()).status == "completed"
                go.set()
                assert (await first.result()).status == "completed"
    assert await builds_of(first) == ["1", "2"]
    assert await builds_of(second) == ["2"]
    steps = [(call.workspace.work_order_id, name) for name, call in doubles.calls if isinstance(call, StepCall)]
    assert [name for order, name in steps if order == first.id] == [step.value for step in Step]
    assert [name for order, name in steps if order == second.id][:2] == ["build_plan", "classify_issue"]


async def test_a_build_takes_work_orders_unless_a_later_release_has_them(
    client: Client, settings: Settings
) -> None:
    """The first build and a later release serve at once; an earlier one says which command gives it the work."""
    await take_work_orders(client, named(settings, "0.0.9-older"), sole=False)
    with capture_logs() as logs:
        await take_work_orders(client, settings, sole=False)
        await take_work_orders(client, settings, sole=False)
        await take_work_orders(client, named(settings, "99.0.0-later"), sole=True)
        await take_work_orders(client, settings, sole=False)
    made, _, warned = logs
    assert (made["event"], made["before"]) == ("build_made_current", "0.0.9-older")
    assert (warned["event"], warned["current"]) == ("build_not_current", "99.0.0-later")
    command = "temporal worker deployment set-current-version"
    assert warned["remedy"].startswith(command)
    assert build_id(settings) in warned["remedy"]


async def test_a_build_takes_over_from_another_one_of_its_release_that_is_gone(
    client: Client, settings: Settings
) -> None:
    """The one that started last serves; when no worker of it is left, the others do not wait for it for ever."""
    last = named(settings, f"{version('septet')}-last")
    doubles = Doubles(f"{settings.task_queue}-host")
    async with asyncio.timeout(60):
        async with worker_of(client, last, WorkOrder, doubles):
            await take_work_orders(client, last, sole=True)
            order = await begun(client, settings)
            await wait_until(lambda: builds_of(order), lambda builds: builds == [f"{version('septet')}-last"])
            assert not await take_what_nobody_serves(client, settings)
        assert not await take_what_nobody_serves(
            client, named(settings, f"{version('septet')}-named"), silent_seconds=0
        )
        assert not await take_what_nobody_serves(client, settings)
        assert await take_what_nobody_serves(client, settings, silent_seconds=0)
        assert not await take_what_nobody_serves(client, settings, silent_seconds=0)
        await take_work_orders(client, named(settings, "99.0.0-later"), sole=True)
        assert not await take_what_nobody_serves(client, settings, silent_seconds=0)
    await order.terminate()


async def test_a_named_build_and_one_without_a_version_wait_for_a_person(
    client: Client, settings: Settings
) -> None:
    """`SEPTET_BUILD_ID` and `SEPTET_VERSIONING=off` leave the choice to whoever runs the server, but for `up`."""
    plain = settings.model_copy(update={"versioning": False})
    with capture_logs() as logs:
        await take_work_orders(client, plain, sole=True)
        await take_work_orders(client, settings, sole=False)
        await take_work_orders(client, named(settings, "99.0.0"), sole=False)
        await take_work_orders(client, plain, sole=False)
        await take_work_orders(client, plain, sole=True)
    assert [(entry["event"], entry["build"]) for entry in logs] == [
        ("build_made_current", build_id(settings)),
        ("build_not_current", "99.0.0"),
        ("build_not_current", "unversioned"),
        ("build_made_current", "unversioned"),
    ]
    assert "--unversioned" in logs[2]["remedy"]
