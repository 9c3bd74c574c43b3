"""The board on a real server: the order in which waiting work orders get seats under the limits."""

import asyncio
import contextlib
import dataclasses
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from operator import eq
from typing import Any

import pytest
from fakes.activities import Doubles, done
from fakes.parent import Parent
from fakes.recorded import keep
from fakes.running import replayed
from fakes.waiting import wait_until
from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import Replayer, Worker

from activities.board.board import BoardActivities
from septet.board import MOST_WAITING, BoardState, HostCapacity, KnownOrders, SeatRequest, WaitingOrders, board_id
from septet.contracts.names import Step
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import Task
from septet.settings import Settings
from workers.connection.plugin import SeptetPlugin
from workers.watching.reports import tell_board
from workflows.board import Board
from workflows.pull_request.pull_request import PullRequestWorkflow
from workflows.work_order.workflow import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

WITHIN_SECONDS = 60
ORDER = {"repository": "/app", "title": "Totals are wrong", "project": "app"}


@dataclass
class Floor:
    """A queue with its board, and work orders whose first step ends when the test lets it end."""

    client: Client
    doubles: Doubles
    began: list[str] = field(default_factory=list)
    may_end: dict[str, asyncio.Event] = field(default_factory=dict)

    async def first_step(self, call: StepCall) -> StepResult:
        """Record that a work order has begun, and wait until the test lets the step end."""
        self.began.append(call.workspace.work_order_id)
        ending = self.may_end.setdefault(call.workspace.work_order_id, asyncio.Event())
        while not ending.is_set():
            activity.heartbeat()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ending.wait(), 1)
        return done(call)

    async def create(self, name: str, **fields: Any) -> WorkflowHandle[Any, Task]:
        return await self.client.start_workflow(
            "WorkOrder",
            {**ORDER, "stage": "triaged", **fields},
            id=f"{name}-{self.doubles.task_queue[-8:]}",
            task_queue=self.doubles.task_queue,
            result_type=Task,
        )

    async def serve(self, host: str = "one", *, project_limit: int = 4, host_limit: int = 20) -> None:
        """Report to the board that a host serves the queue."""
        settings = Settings(
            task_queue=self.doubles.task_queue, project_limit=project_limit, host_limit=host_limit, environ={}
        )
        await tell_board(self.client, settings, host)

    @property
    def board(self) -> WorkflowHandle[Any, Any]:
        return self.client.get_workflow_handle(board_id(self.doubles.task_queue))

    def end(self, name: str) -> None:
        order_id = f"{name}-{self.doubles.task_queue[-8:]}"
        self.may_end.setdefault(order_id, asyncio.Event()).set()

    def names(self) -> list[str]:
        """Return the names of the work orders that have begun, in their order."""
        return [order_id.rpartition("-")[0] for order_id in self.began]

    async def until_known(self, waiting: int) -> None:
        """Wait until the board counts this number of waiting work orders."""
        await self.until_shown(f"**{waiting}** wait")

    async def until_shown(self, words: str) -> None:
        ask = partial(self.board.query, "__temporal_workflow_metadata")
        await wait_until(ask, lambda details: words in str(details))


@asynccontextmanager
async def floor_of(client: Client, way: str = "") -> AsyncIterator[Floor]:
    """Yield a queue with a worker; at the end, end all work orders on the queue and replay the board's history."""
    doubles = Doubles(task_queue=f"queue-{uuid.uuid4().hex}")
    floor = Floor(client, doubles)
    doubles.steps[Step.CLASSIFY_ISSUE] = [floor.first_step]
    board = BoardActivities()
    async with Worker(
        client,
        task_queue=doubles.task_queue,
        workflows=[WorkOrder, PullRequestWorkflow, Board, Parent],
        activities=[*doubles.activities(), board.find_closed, board.find_waiting],
    ):
        yield floor
        history = None
        with contextlib.suppress(Exception):
            history = await floor.board.fetch_history()
        async for row in client.list_workflows(f'TaskQueue="{doubles.task_queue}" AND ExecutionStatus="Running"'):
            with contextlib.suppress(RPCError):  # it has ended meanwhile
                await client.get_workflow_handle(row.id, run_id=row.run_id).terminate()
        for ending in floor.may_end.values():
            ending.set()
    if history is not None:
        await Replayer(workflows=[Board], plugins=[SeptetPlugin()]).replay_workflow(history)
        if way:
            keep(way, history)


async def test_no_project_and_no_host_gets_more_than_its_limit(client: Client) -> None:
    """Two work orders of a project run and a third waits despite a free seat; a work order that ends frees its seat."""
    async with floor_of(client, "board/seats") as floor:
        await floor.serve(host_limit=0, project_limit=2)
        for name in ("a1", "a2", "a3"):
            await floor.create(name, priority=5)
        for name in ("b1", "b2"):
            await floor.create(name, project="other")
        await floor.until_known(5)
        await floor.serve(host_limit=3, project_limit=2)
        await floor.until_known(2)
        await wait_until(lambda: len(floor.began) == 3)
        assert sorted(floor.names()) == ["a1", "a2", "b1"]
        floor.end("a1")
        await wait_until(lambda: len(floor.began) == 4)
        assert floor.names()[-1] == "a3"


async def test_a_busy_board_finds_a_seat_of_one_that_was_terminated(client: Client) -> None:
    """A signal each second does not delay the board's search for work orders that were terminated."""
    async with floor_of(client) as floor:
        await floor.serve(host_limit=1)
        first = await floor.create("first")
        await wait_until(lambda: floor.names() == ["first"])
        await first.terminate()
        await floor.create("second")
        async with asyncio.TaskGroup() as beside:
            telling = beside.create_task(_tell_every_second(floor))
            await wait_until(lambda: floor.names() == ["first", "second"], seconds=30)
            telling.cancel()


async def test_only_those_that_are_over_are_found_closed(client: Client) -> None:
    """A work order that runs again is not closed; a terminated work order and an unknown id are closed."""
    async with floor_of(client) as floor:
        await floor.serve()
        again = await floor.create("again")
        await again.terminate()
        running, over = await floor.create("again"), await floor.create("over")
        await over.terminate()
        known = KnownOrders(ids=(running.id, over.id, "wo-nobody", 'wo-"quoted"'))

        async def is_caught_up() -> bool:
            ended = f'WorkflowId IN ("{again.id}", "{over.id}") AND ExecutionStatus="Terminated"'
            began = f'WorkflowId="{running.id}" AND ExecutionStatus="Running"'
            return [(await client.count_workflows(query)).count for query in (ended, began)] == [2, 1]

        await wait_until(is_caught_up)  # the server's lists lag behind its state
        closed = await ActivityEnvironment(client=client).run(BoardActivities().find_closed, known)
        assert closed == [over.id, "wo-nobody", 'wo-"quoted"']


async def test_one_that_comes_after_others_waits_for_them(client: Client) -> None:
    """A work order requests no seat until the work orders before it have ended; then it begins without a command."""
    async with floor_of(client) as floor:
        await floor.serve()
        await floor.create("later", after=["wo-before"], stage=None)
        await wait_until(lambda: floor.doubles.looks)
        assert floor.began == []
        floor.doubles.over.add("wo-before")
        await wait_until(lambda: floor.names() == ["later"])


async def test_a_board_goes_on_from_what_another_run_knew(client: Client) -> None:
    """The board remembers the best waiting work orders, and queries the server for the rest when few remain."""
    queue, told = f"queue-{uuid.uuid4().hex}", []

    @activity.defn(name="find_closed")
    async def find_closed(known: KnownOrders) -> list[str]:
        return []

    @activity.defn(name="find_waiting")
    async def find_waiting(known: KnownOrders) -> WaitingOrders:
        told.append(known)
        return WaitingOrders(waiting=(SeatRequest(id="wo-passed-over", project="app", score=3, since=1e4),))

    state = BoardState(
        waiting=tuple((f"wo-{number}", "app", 3, float(number)) for number in range(MOST_WAITING + 9)),
        holders=(("wo-a", "app"),),
        hosts=(("one", 1, 4e9),),
        project_limit=4,
    )
    async with Worker(client, task_queue=queue, workflows=[Board], activities=[find_closed, find_waiting]):
        handle = await client.start_workflow(Board.run, state, id=board_id(queue), task_queue=queue)
        details = await handle.query("__temporal_workflow_metadata")
        assert f"**{MOST_WAITING}** and more wait, **1** of 1 seats are taken" in str(details)
        await handle.signal(Board.leaves, "wo-0")
        await handle.signal(Board.serves, HostCapacity(host="two", host_limit=0, project_limit=4, seconds=60))
        details = await handle.query("__temporal_workflow_metadata")
        assert f"**{MOST_WAITING - 1}** and more wait" in str(details)
        numbers = range(1, MOST_WAITING // 2 + 2)
        await asyncio.gather(*(handle.signal(Board.leaves, f"wo-{number}") for number in numbers))
        await wait_until(lambda: told)
        assert len(told[0].ids) < MOST_WAITING // 2 + 1
        await handle.terminate()
        await replayed(handle, "board/gone-on")


async def test_only_those_that_ask_the_board_are_found_to_wait(client: Client) -> None:
    """The search leaves out work orders in a pipeline and work orders that come after others, and finds the best rest."""
    async with floor_of(client) as floor:
        await floor.create("later", after=["wo-before"], stage=None)
        await wait_until(lambda: floor.doubles.looks)
        names = [f"wo{score}" for score in (5, 4, 3, 2)]
        for name in reversed(names):
            await floor.create(name, priority=int(name[-1]))
        parent = await client.start_workflow(
            Parent.run, {**ORDER, "stage": "triaged"}, id=f"p-{uuid.uuid4()}", task_queue=floor.doubles.task_queue
        )

        async def are_listed() -> bool:
            query = f'TaskQueue="{floor.doubles.task_queue}" AND SeptetStage="triaged"'
            return (await client.count_workflows(query)).count == len(names) + 2

        await wait_until(are_listed)
        asking = ActivityEnvironment(client=client)
        asking.info = dataclasses.replace(asking.info, task_queue=floor.doubles.task_queue)
        known = (f"wo4-{floor.doubles.task_queue[-8:]}",)
        found = await asking.run(BoardActivities().find_waiting, KnownOrders(ids=known, limit=2, project_limit=4))
        assert [each.id.rpartition("-")[0] for each in found.waiting] == ["wo5", "wo3"]
        assert not found.all
        everything = KnownOrders(ids=known, limit=3, project_limit=4)
        assert (await asking.run(BoardActivities().find_waiting, everything)).all
        await parent.terminate()


async def test_a_board_that_hands_over_gives_each_seat_once(short_runs: Client) -> None:
    """Over several runs of a board, no waiting or running work order is forgotten, and none begins twice."""
    names = [f"wo{number}" for number in range(6)]
    async with floor_of(short_runs) as floor:
        await floor.serve(host_limit=0, project_limit=9)
        for name in names:
            await floor.create(name)
        await floor.until_known(len(names))
        await floor.serve(host_limit=2, project_limit=9)
        for over in range(len(names)):
            seats = min(over + 2, len(names))
            await wait_until(lambda: len(floor.began), partial(eq, seats))
            await _has_handed_over(floor)
            assert sorted(floor.names()) == names[:seats]
            floor.end(names[over])
        await floor.until_shown("**0** wait, **0** of 2 seats")
        assert sorted(floor.names()) == names


async def _tell_every_second(floor: Floor) -> None:
    while True:
        await floor.board.signal(Board.leaves, "wo-nobody")
        await asyncio.sleep(1)


async def _has_handed_over(floor: Floor) -> None:
    """Report known facts to the board until another run has taken over."""
    before = (await floor.board.describe()).run_id
    async with asyncio.timeout(WITHIN_SECONDS):
        while (await floor.board.describe()).run_id == before:
            await floor.serve(host_limit=2, project_limit=9)
