"""A new build of the workers while work orders run, and hosts that take new work."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes.activities import Doubles
from fakes.patched_work_order import PatchedWorkOrder
from fakes.running import start
from fakes.waiting import wait_until
from structlog.testing import capture_logs
from temporalio.client import Client, WorkflowHandle
from temporalio.common import SearchAttributeKey
from temporalio.worker import Worker

from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import Status
from septet.contracts.task import Task
from septet.errors import NotFoundError, RefusedTransitionError, UsageError
from septet.settings import Settings
from septet.telemetry.metrics import UNSERVED, Metric
from septet.telemetry.recorder import Recorder
from workers.builds.build_id import build_id, own_patches
from workers.builds.deployment import Deployment, ListedWorker, Routing
from workers.builds.promotion import SILENT, PromotionCall, any_opens, promote
from workers.builds.versions import announcing_build, deployment_config
from workers.watching.amount_metrics import AmountMetrics
from workflows.pull_request.pull_request import PullRequestWorkflow
from workflows.work_order.workflow import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(state_dir=tmp_path, task_queue=f"queue-{uuid.uuid4().hex}")


def named(settings: Settings, build: str) -> Settings:
    return settings.model_copy(update={"build_id": build})


def worker_of(client: Client, settings: Settings, workflow: type, doubles: Doubles) -> Worker:
    """Return a worker of work orders, versioned like the real worker; another worker takes the steps."""
    open_workspace, *_ = doubles.activities()
    return Worker(
        client,
        task_queue=settings.task_queue,
        workflows=[workflow, PullRequestWorkflow],
        activities=[open_workspace],
        deployment_config=deployment_config(settings),
    )


@asynccontextmanager
async def serving(
    client: Client, settings: Settings, workflow: type, doubles: Doubles, *, sole: bool = False
) -> AsyncIterator[None]:
    """Run a worker of work orders that announces its build to the server."""
    async with (
        worker_of(client, settings, workflow, doubles),
        announcing_build(client, settings, sole=sole),
    ):
        yield


async def is_served(client: Client, settings: Settings, build: str) -> bool:
    """Say whether the server lists a build with a worker that polls."""
    deployment = Deployment(client, settings.task_queue)
    return build in await deployment.last_polls() and await deployment.has(build)


async def test_of_builds_that_start_together_one_becomes_current(client: Client, settings: Settings) -> None:
    """A deployment's first build needs no promotion; of several builds at once, the server makes one current, once."""
    doubles = Doubles(f"{settings.task_queue}-host")
    with capture_logs() as logs:
        async with asyncio.timeout(60), AsyncExitStack() as stack:
            first = [serving(client, named(settings, name), WorkOrder, doubles) for name in "abc"]
            await asyncio.gather(*map(stack.enter_async_context, first))
            current = (await routing(client, settings)).current
            await stack.enter_async_context(serving(client, named(settings, "d"), WorkOrder, doubles))
            assert (await routing(client, settings)).current == current
    made = [log["build"] for log in logs if log["event"] == "build_made_current"]
    assert made == [current]
    assert {log["build"] for log in logs if log["event"] == "build_not_current"} == {*"abcd"} - {current}


async def test_up_takes_all_work_orders(client: Client, settings: Settings) -> None:
    """The worker of an embedded server becomes current: after an upgrade, after a downgrade, and without versions."""
    plain = settings.model_copy(update={"versioning": False})
    doubles = Doubles(f"{settings.task_queue}-host")
    for each, build in ((named(settings, "99.0.0"), "99.0.0"), (settings, build_id(settings)), (plain, "")):
        async with asyncio.timeout(60), serving(client, each, WorkOrder, doubles, sole=True):
            assert (await routing(client, settings)).current == build
    with capture_logs() as logs:
        async with asyncio.timeout(60), serving(client, settings, WorkOrder, doubles):
            assert (await routing(client, settings)).current == ""
    assert [log["event"] for log in logs] == ["build_not_current"]


async def test_a_promotion_that_would_leave_work_orders_waiting_is_refused(
    client: Client, settings: Settings
) -> None:
    """The refusal names patches and work orders; with force they wait until their build is current again."""
    doubles = Doubles(f"{settings.task_queue}-host")
    old, later = named(settings, "old"), named(settings, "later")
    back, forth = PromotionCall(build=old.build_id), PromotionCall(build=later.build_id)
    async with asyncio.timeout(110):
        async with (
            serving(client, old, WorkOrder, doubles),
            serving(client, later, PatchedWorkOrder, doubles),
        ):
            deployment = Deployment(client, settings.task_queue)
            await wait_until(lambda: deployment.patches_of("later"), lambda patches: patches is not None)
            await deployment.tell_patches("later", {*own_patches(), "plan-first"})
            await deployment.tell_patches(str(old.build_id), own_patches())
            await promote(client, settings, forth)
            order = await start(client, settings.task_queue)
            await wait_until(lambda: patches_under_way(client, order), lambda ids: "plan-first" in ids)
            with pytest.raises(RefusedTransitionError) as refused:
                await promote(client, settings, back)
            assert (
                refused.value.message
                == f"Build {old.build_id} lacks the patches plan-first: {order.id} would wait."
            )
            assert (await routing(client, settings)).current == "later"
            forced = await promote(client, settings, replace(back, force=True))
            assert (forced.build, forced.before, forced.waiting) == (old.build_id, "later", (order.id,))
            orders = WorkOrders(client, settings.task_queue)
            stuck = await wait_until(lambda: nudged(orders, order), lambda task: task.stuck)
            assert stuck.status is Status.RUNNING
            assert stuck.stuck is not None
            assert "later started: [TMPRL1100]" in stuck.stuck
            assert "`septet promote later`" in stuck.stuck
            row = order.id, "Its workflow task fails; `septet show` shows the reason."
            await wait_until(orders.list, lambda page: row in {(task.id, task.stuck) for task in page.tasks})
            await promote(client, settings, forth)
            await wait_until(lambda: orders.get(order.id), lambda task: not task.stuck)
            async with Worker(client, task_queue=doubles.task_queue, activities=doubles.activities()):
                assert (await order.result()).status == "completed"
            assert (await promote(client, settings, back)).waiting == ()


@asynccontextmanager
async def patches_in_use(client: Client, settings: Settings) -> AsyncIterator[Doubles]:
    """Run a work order that holds a patch, for a minute at most."""
    doubles = Doubles(f"{settings.task_queue}-host")
    async with asyncio.timeout(60), serving(client, settings, PatchedWorkOrder, doubles):
        order = await start(client, settings.task_queue)
        await wait_until(lambda: patches_under_way(client, order), lambda ids: ids)
        yield doubles
    await order.terminate()


async def test_a_build_that_does_not_tell_its_patches_is_refused_where_any_are_in_use(
    client: Client, settings: Settings
) -> None:
    """If patches are in use, a build with unknown patches is refused."""
    async with (
        patches_in_use(client, settings) as doubles,
        worker_of(client, named(settings, "mute"), WorkOrder, doubles),
    ):
        await wait_until(lambda: is_served(client, settings, "mute"))
        with pytest.raises(RefusedTransitionError, match="mute does not report its patches"):
            await promote(client, settings, PromotionCall(build="mute", within_seconds=5))


async def test_a_build_whose_worker_has_just_begun_is_asked_for_its_patches_until_it_tells_them(
    client: Client, settings: Settings
) -> None:
    """A promotion waits for the patches of a new build, as a release promotes right after it starts its workers."""
    async with (
        patches_in_use(client, settings) as doubles,
        worker_of(client, named(settings, "later"), PatchedWorkOrder, doubles),
    ):
        await wait_until(lambda: is_served(client, settings, "later"))
        promoted = asyncio.create_task(promote(client, settings, PromotionCall(build="later")))
        done_early, _ = await asyncio.wait([promoted], timeout=1)
        assert not done_early
        await Deployment(client, settings.task_queue).tell_patches("later", {"plan-first"})
        assert (await promoted).waiting == ()


async def test_a_build_without_a_worker_is_waited_for_and_then_refused(client: Client, settings: Settings) -> None:
    """A promotion waits for a build's first worker; its refusal names the builds with workers."""
    doubles = Doubles(f"{settings.task_queue}-host")
    async with asyncio.timeout(60), serving(client, settings, WorkOrder, doubles):
        with pytest.raises(NotFoundError) as refused:
            await promote(client, settings, PromotionCall(build="later", within_seconds=5))
        assert "No worker of build later takes work orders" in refused.value.message
        assert refused.value.remedy.endswith(f"Builds with workers: {build_id(settings)}.")
        promoted = asyncio.create_task(promote(client, settings, PromotionCall(build="later")))
        async with serving(client, named(settings, "later"), WorkOrder, doubles):
            assert (await promoted).before == build_id(settings)
            assert (await routing(client, settings)).current == "later"


async def test_without_versions_there_is_nothing_to_promote(client: Client, settings: Settings) -> None:
    """If workers have no versions, a promotion is refused, whatever the server knows."""
    with pytest.raises(UsageError, match="SEPTET_VERSIONING is off"):
        await promote(client, settings.model_copy(update={"versioning": False}), PromotionCall())


async def routing(client: Client, settings: Settings) -> Routing:
    return await Deployment(client, settings.task_queue).routing()


async def nudged(orders: WorkOrders, order: WorkflowHandle[Any, Task]) -> Task:
    """Nudge a work order and return it; the first task may still be decided by the previous build."""
    await order.signal(WorkOrder.nudge)
    return await orders.get(order.id)


async def patches_under_way(client: Client, order: WorkflowHandle[Any, Task]) -> list[str]:
    """Return the patches by which the server finds a work order."""
    query = f'WorkflowId="{order.id}" AND TemporalChangeVersion IS NOT NULL'
    key = SearchAttributeKey.for_keyword_list("TemporalChangeVersion")
    return [patch async for row in client.list_workflows(query) for patch in row.typed_search_attributes[key]]


NOW = datetime(2026, 11, 29, tzinfo=UTC)
LONG_AGO = NOW - SILENT - timedelta(seconds=1)


def listed(*, opens: bool, heard_at: datetime = NOW, is_stopping: bool = False) -> ListedWorker:
    return ListedWorker("instance", "septet@host", "one", heard_at, timedelta(seconds=10), is_stopping, opens)


@pytest.mark.parametrize(
    ("polls", "workers", "opens"),
    [
        ([NOW], [], True),
        ([LONG_AGO], [], False),
        ([LONG_AGO], [listed(opens=True)], True),
        ([LONG_AGO], [listed(opens=False)], False),
        ([NOW - timedelta(seconds=20)], [listed(opens=True, is_stopping=True), listed(opens=False)], False),
        ([NOW], [listed(opens=True, heard_at=NOW - timedelta(seconds=30)), listed(opens=False)], True),
    ],
    ids=["asks", "asks no more", "busy", "drained", "stopped beside a drained one", "began anew"],
)
async def test_what_the_server_tells_of_openings(
    polls: list[datetime], workers: list[ListedWorker], *, opens: bool
) -> None:
    """A poll counts if it is later than the last sign of a stopped worker; slots count while their worker is heard."""
    assert any_opens(polls, workers, NOW) is opens


async def test_work_that_no_worker_takes_is_measured(client: Client) -> None:
    """One worker reports the work that no worker takes, and reports unknown after another worker takes over."""
    queue, values = f"queue-{uuid.uuid4().hex}", dict[str, float]()

    def take(metric: Metric, value: float, labels: Mapping[str, str]) -> None:
        if metric is UNSERVED:
            values[labels["work"]] = value

    recorder = Recorder()
    recorder.send_to(take)
    metrics = AmountMetrics(client, queue, recorder)
    await metrics.look()
    assert values == {"decisions": 1.0, "openings": 1.0}
    async with Worker(client, task_queue=queue, workflows=[WorkOrder]):

        async def measured() -> dict[str, float]:
            await metrics.look()
            return values

        await wait_until(measured, lambda told: told["decisions"] == 0.0)
        assert values["openings"] == 1.0
    metrics.is_ours = lambda: False
    await metrics.look()
    assert all(map(math.isnan, values.values()))
