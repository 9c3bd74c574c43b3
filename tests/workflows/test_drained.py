"""Whether any host of a queue takes new work: a busy host does, and a drained host does not."""

import asyncio
import math
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from fakes.waiting import wait_until
from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from septet.telemetry.metrics import UNSERVED, Metric
from septet.telemetry.recorder import Recorder
from workers.builds.deployment import Deployment, ListedWorker
from workers.builds.promotion import SILENT, any_opens, opens_workspaces
from workers.watching.amount_metrics import AmountMetrics
from workflows.work_order import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOW = datetime(2026, 11, 29, tzinfo=UTC)
LONG_AGO = NOW - SILENT - timedelta(seconds=1)


async def test_a_host_whose_slots_are_all_taken_is_not_drained(client: Client) -> None:
    """The server lists a busy host with its slots while the host does not poll; a drained host has no slots."""
    begins, go = asyncio.Event(), asyncio.Event()

    @activity.defn(name="open_workspace")
    async def opening() -> None:
        begins.set()
        await go.wait()

    busy, drained = (f"queue-{uuid.uuid4().hex}" for _ in range(2))
    async with (
        Worker(client, task_queue=busy, activities=[opening], max_concurrent_activities=1),
        Worker(client, task_queue=drained, workflows=[WorkOrder]),
    ):
        handle = await client.start_activity(
            "open_workspace", id=busy, task_queue=busy, start_to_close_timeout=timedelta(minutes=1)
        )
        await begins.wait()
        (opener,) = await wait_until(
            lambda: Deployment(client, busy).workers(), lambda found: [each.opens for each in found] == [True]
        )
        (other,) = await wait_until(lambda: Deployment(client, drained).workers(), lambda listed: listed)
        go.set()
        await handle.result()
        assert not other.opens
        assert not await opens_workspaces(Deployment(client, drained))
    assert any_opens([LONG_AGO], [opener], opener.heard_at)


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
