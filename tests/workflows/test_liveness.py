"""Hosts that watch each other, with real workers: a silent host's work orders get signals of its silence and return."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from fakes.around import Call, around
from fakes.step_lab import settings_of
from fakes.waiting import wait_until
from temporalio import activity, workflow
from temporalio.client import Client, SignalWorkflowInput, WorkflowHandle
from temporalio.common import SearchAttributePair, TypedSearchAttributes
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from activities.host.host import Host
from septet.agents.sandbox.supervisors import Supervisors
from septet.contracts.workspace import DELIVERS_CANCELS, END_WORK, LIVENESS, HostSilence
from septet.state import StateDir
from workers.observing.runtime import quiet_runtime
from workers.server.preflight import host_services
from workers.watching.heard_hosts import HostsWatch
from workflows.wire.search_attributes import HOST, STAGE, STATUS

pytestmark = pytest.mark.asyncio(loop_scope="session")

INTERVAL = 1.0


@workflow.defn(name="WorkOrder", sandboxed=False)
class ToldOrder:
    """A work order that records the signals about hosts."""

    def __init__(self) -> None:
        self._words: list[str] = []

    @workflow.run
    async def run(self) -> None:
        """Run until the test terminates the work order."""
        await workflow.wait_condition(lambda: False)

    @workflow.signal
    def host_silent(self, silence: HostSilence) -> None:
        self._words.append(f"{silence.host} is silent")

    @workflow.signal
    def host_back(self, host: str) -> None:
        self._words.append(f"{host} is back")

    @workflow.signal
    def move(self, host: str) -> None:
        workflow.upsert_search_attributes([HOST.value_set(host)])

    @workflow.query
    def words(self) -> list[str]:
        return self._words


@activity.defn(name="nothing")
async def nothing() -> None:
    """Give a worker an activity to serve."""


@pytest_asyncio.fixture(loop_scope="session")
async def heard(client: Client) -> Client:
    """A client whose workers send a heartbeat each second."""
    return await Client.connect(
        client.service_client.config.target_host,
        data_converter=pydantic_data_converter,
        runtime=quiet_runtime(INTERVAL),
    )


def host_at(root: Path, queue: str) -> Host:
    """Return a host of a queue; its state directory determines its id."""
    root.mkdir()
    settings = settings_of(root, task_queue=queue, probe_seconds=6 * INTERVAL)
    state = StateDir(settings.state_dir)
    state.prepare()
    return Host(state.host_id(), settings, state, Supervisors(), serves=(END_WORK, LIVENESS))


@asynccontextmanager
async def alive(client: Client, host: Host) -> AsyncIterator[None]:
    """Run a host's worker while the block lasts."""
    async with Worker(client, task_queue=host.task_queue, activities=[nothing]):
        yield


async def order_on(
    client: Client, host: str, queue: str, *, waits: bool = False, ending: str = ""
) -> WorkflowHandle[Any, Any]:
    """Start a work order whose workspace is on a host; with `waits`, its attributes say that it waits for the host."""
    shown = ("waiting", "blocked") if waits else ("running", "executing")
    pairs = zip((STATUS, STAGE, HOST), (*shown, host), strict=True)
    return await client.start_workflow(
        "WorkOrder",
        id=f"wo-{uuid.uuid4().hex[:8]}{ending}",
        task_queue=queue,
        search_attributes=TypedSearchAttributes([SearchAttributePair(key, value) for key, value in pairs]),
    )


async def test_the_work_orders_of_a_silent_host_are_told_once_and_again_when_it_is_back(
    heard: Client, tmp_path: Path
) -> None:
    """Work orders of a living host get no signal, and only the first of two living hosts sends signals."""
    queue = f"liveness-{uuid.uuid4().hex[:8]}"
    hosts = sorted((host_at(tmp_path / name, queue) for name in "abc"), key=lambda host: host.id)
    watches = [HostsWatch(heard, host) for host in hosts[:2]]
    lost = hosts[2]
    orders = Worker(heard, task_queue=queue, workflows=[ToldOrder])
    async with orders, alive(heard, hosts[0]), alive(heard, hosts[1]):
        async with alive(heard, lost):
            mine, other = [await order_on(heard, host.id, queue) for host in (lost, hosts[0])]
            async with looking(watches):
                await wait_until(lambda: watches[0].heard.speaks(asyncio.get_running_loop().time()))
                assert await mine.query(ToldOrder.words) == []
        async with looking(watches):
            await wait_until(lambda: mine.query(ToldOrder.words), lambda words: words == [f"{lost.id} is silent"])
            async with alive(heard, lost):
                told = [f"{lost.id} is silent", f"{lost.id} is back"]
                await wait_until(lambda: mine.query(ToldOrder.words), lambda words: words == told)
        assert await other.query(ToldOrder.words) == []
        await end(mine, other)


async def test_a_work_order_that_has_moved_is_told_of_its_second_host_too(heard: Client, tmp_path: Path) -> None:
    """The watch signals the silence of the second host too, nothing to another queue, and forgets closed work orders."""
    queue, another = (f"liveness-{uuid.uuid4().hex[:8]}" for _ in range(2))
    host = host_at(tmp_path / "a", queue)
    watch = HostsWatch(heard, host)
    async with (
        Worker(heard, task_queue=queue, workflows=[ToldOrder]),
        Worker(heard, task_queue=another, workflows=[ToldOrder]),
        alive(heard, host),
    ):
        moving, foreign = await order_on(heard, "first", queue), await order_on(heard, "first", another)
        async with looking([watch]):
            await wait_until(lambda: moving.query(ToldOrder.words), lambda words: words == ["first is silent"])
            await moving.signal(ToldOrder.move, "second")
            told = ["first is silent", "second is silent"]
            await wait_until(lambda: moving.query(ToldOrder.words), lambda words: words == told)
            assert await foreign.query(ToldOrder.words) == []
            await end(moving, foreign)
            await wait_until(lambda: [watch.remembers], lambda remembers: remembers == [0])


async def test_one_that_can_be_told_no_more_keeps_the_others_from_nothing(heard: Client, tmp_path: Path) -> None:
    """A refused signal, as of a full history, does not stop the signals to the work orders listed after it."""
    queue = f"liveness-{uuid.uuid4().hex[:8]}"
    host = host_at(tmp_path / "a", queue)

    async def signal(really: Call, signal: SignalWorkflowInput) -> None:
        if signal.id.endswith("-full"):
            message = "exceeded workflow execution limit for signal events"
            raise RPCError(message, RPCStatusCode.INVALID_ARGUMENT, b"")
        await really(signal)

    async with Worker(heard, task_queue=queue, workflows=[ToldOrder]), alive(heard, host):
        first, full, last = [await order_on(heard, "lost", queue, ending=each) for each in ("", "-full", "")]
        async with looking([HostsWatch(around(heard, signal_workflow=signal), host)]):
            for each in (first, last):
                await wait_until(lambda: each.query(ToldOrder.words), lambda words: words == ["lost is silent"])  # noqa: B023 -- used in this round only
        await end(first, full, last)


async def test_one_that_is_shown_to_wait_hears_that_its_host_lives(heard: Client, tmp_path: Path) -> None:
    """The host that reported the silence may be gone: the search attributes of the work order say that it waits."""
    queue = f"liveness-{uuid.uuid4().hex[:8]}"
    host = host_at(tmp_path / "a", queue)
    async with Worker(heard, task_queue=queue, workflows=[ToldOrder]), alive(heard, host):
        waiting = await order_on(heard, host.id, queue, waits=True)
        async with looking([HostsWatch(heard, host)]):
            await wait_until(lambda: waiting.query(ToldOrder.words))
            later = await order_on(heard, host.id, queue, waits=True)
            await wait_until(lambda: later.query(ToldOrder.words))
        assert await waiting.query(ToldOrder.words) == [f"{host.id} is back"]
        await end(later)
        await end(waiting)


async def test_what_a_host_serves_depends_on_its_server(client: Client) -> None:
    """Septet's own server lists workers, so that hosts need no probes, and pushes no cancels, so that hosts do."""
    assert {LIVENESS, DELIVERS_CANCELS} <= {*await host_services(client)}


@asynccontextmanager
async def looking(watches: list[HostsWatch]) -> AsyncIterator[None]:
    """Let the watches look in turn while the block lasts."""

    async def go_on() -> None:
        while True:
            for watch in watches:
                await watch.look()
            await asyncio.sleep(INTERVAL / 4)

    task = asyncio.create_task(go_on())
    try:
        yield
        assert not task.done(), task
    finally:
        task.cancel()


async def end(*handles: WorkflowHandle[Any, Any]) -> None:
    for handle in handles:
        await handle.terminate()
