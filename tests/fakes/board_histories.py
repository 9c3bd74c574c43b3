"""Boards and watches whose histories are recorded, each with what happens to it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, Literal

from fakes.activities import Doubles, done, ended
from fakes.waiting import wait_until
from temporalio import activity
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle, WorkflowHistory
from temporalio.worker import Worker

from septet.contracts.board import BoardState, HostCapacity, KnownOrders, SeatRequest, WaitingOrders
from septet.contracts.budget import BudgetWait
from septet.contracts.decisions import MoveCall
from septet.contracts.facts import Rescue
from septet.contracts.limits import Timeouts
from septet.contracts.names import Stage, Status, Step, Verdict
from septet.contracts.pull_request import Follow, PullRequestNews, PullRequestWatch, WatchingHost
from septet.contracts.rework import ReworkEvent
from septet.contracts.steps import Progress, StepCall, StepResult
from septet.contracts.task import Task
from septet.contracts.transitions import Target
from septet.contracts.workspace import OpenWorkspace
from workflows.board.board import Board
from workflows.pull_request.pull_request import PullRequestWorkflow

QUEUE: Final = "board-histories"
_WITHIN_SECONDS: Final = 60.0
_URL: Final = "file:///origin.git/pull/1"
_SPENT: Final = BudgetWait(
    scope="order/wo-round-over-budget", step="rework", limit="2usd", message="It is used up."
)
_ONE: Final = HostCapacity(host="one", host_limit=1, project_limit=4, seconds=1e9)

Handle = WorkflowHandle[Any, Any]
Event = Callable[[Handle, Doubles], Awaitable[None]]


async def _seats(handle: Handle, _doubles: Doubles) -> None:
    """Two wait for one seat; nobody of that name is there, so each is forgotten as its turn comes."""
    await handle.signal(Board.waits, SeatRequest(id="wo-nobody", project="app", score=3, since=1.0))
    await handle.signal(Board.waits, SeatRequest(id="wo-nobody-else", project="app", score=9, since=2.0))
    await handle.signal(Board.serves, _ONE)
    await _until(handle, "**0** wait, **0** of 1")
    await handle.terminate()


async def _gone_on(handle: Handle, _doubles: Doubles) -> None:
    """A board goes on from its last run: the one with the seat is found closed, as somebody waits."""
    await _until(handle, "**0** wait, **0** of 1")
    await handle.terminate()


async def _merged(handle: Handle, doubles: Doubles) -> None:
    await handle.query(PullRequestWorkflow.work_order)
    doubles.pull_requests[_URL] = "merged"


async def _blocked_and_done(handle: Handle, doubles: Doubles) -> None:
    doubles.pull_requests[_URL] = "closed"
    await wait_until(
        lambda: handle.query(PullRequestWorkflow.work_order), lambda task: task.stage is Stage.BLOCKED
    )
    await handle.signal(PullRequestWorkflow.nudge)
    await wait_until(lambda: len(doubles.looks) > 1)
    await wait_until(
        lambda: handle.query(PullRequestWorkflow.work_order), lambda task: task.stage is Stage.BLOCKED
    )
    await handle.execute_update(
        PullRequestWorkflow.move, MoveCall(to=Target.DONE, who="ann", why="merged by hand")
    )


async def _cancelled(handle: Handle, doubles: Doubles) -> None:
    await wait_until(lambda: doubles.looks)
    await handle.cancel()


async def _seen_by_host(handle: Handle, _doubles: Doubles) -> None:
    """The host that looks cannot see it for a while, then sees that it was closed; a person nudges, and it is merged."""
    await handle.query(PullRequestWorkflow.work_order)
    away = PullRequestNews(url=_URL, state="unknown", kind="ForgeUnavailable", why="The forge is away.")
    for news in (away, PullRequestNews(url=_URL, state="open"), PullRequestNews(url=_URL, state="closed")):
        await handle.signal(PullRequestWorkflow.looked, news)
    await wait_until(
        lambda: handle.query(PullRequestWorkflow.work_order), lambda task: task.stage is Stage.BLOCKED
    )
    await handle.signal(PullRequestWorkflow.nudge)
    await wait_until(lambda: handle.query(PullRequestWorkflow.work_order), lambda task: task.stage is Stage.REVIEW)
    await handle.signal(PullRequestWorkflow.looked, PullRequestNews(url=_URL, state="merged"))


async def _taken_over(handle: Handle, _doubles: Doubles) -> None:
    """Another host looks from now on, and sees the merge."""
    await handle.query(PullRequestWorkflow.work_order)
    await handle.signal(
        PullRequestWorkflow.watch_from, WatchingHost(host="second", control_queue="second-control")
    )
    await handle.signal(PullRequestWorkflow.looked, PullRequestNews(url=_URL, state="merged"))


async def _told_early(handle: Handle, _doubles: Doubles) -> None:
    """It was merged, and a host had seen so or a person has it looked at, before its watch decided anything."""
    await handle.result()


async def _followed(handle: Handle, doubles: Doubles) -> None:
    """A check fails, and then once more: two rounds, the second one with a second try; then it is merged."""
    doubles.rework = (_mended, _moved, _mended)
    await handle.query(PullRequestWorkflow.work_order)
    await _round(handle, 1)
    await _round(handle, 2)
    await handle.signal(PullRequestWorkflow.looked, PullRequestNews(url=_URL, state="merged"))


async def _round(handle: Handle, number: int) -> None:
    await handle.signal(PullRequestWorkflow.looked, _news(f"checks:{number}"))
    await wait_until(
        lambda: handle.query(PullRequestWorkflow.work_order),
        lambda task: (
            task.rework is not None
            and (task.rework.round, task.rework.state, task.stage) == (number, "waiting", Stage.REVIEW)
        ),
    )


async def _until_rework(handle: Handle, state: str) -> None:
    await wait_until(
        lambda: handle.query(PullRequestWorkflow.work_order),
        lambda task: task.rework is not None and task.rework.state == state,
    )


async def _rework_ended(handle: Handle, doubles: Doubles) -> None:
    """A person takes the pull request over while the agent works, and merges it."""
    doubles.rework = (_works_until_cancelled,)
    await handle.query(PullRequestWorkflow.work_order)
    await handle.signal(PullRequestWorkflow.looked, _news("review:1"))
    await wait_until(lambda: "rework" in doubles.names())
    await handle.execute_update(PullRequestWorkflow.move, MoveCall(to=Target.REVIEW, who="ann", why="I do it"))
    await _until_rework(handle, "ended")
    await handle.signal(PullRequestWorkflow.looked, PullRequestNews(url=_URL, state="merged"))


async def _round_over_budget(handle: Handle, doubles: Doubles) -> None:
    """The budget of the rounds is used up; once it is raised the round goes on, and its work is merged."""
    doubles.rework = (_over_budget, _mended)
    await handle.query(PullRequestWorkflow.work_order)
    await handle.signal(PullRequestWorkflow.looked, _news("checks:1"))
    await wait_until(lambda: handle.query(PullRequestWorkflow.work_order), lambda task: task.budget is not None)
    await handle.signal(PullRequestWorkflow.budget_open, _SPENT.scope)
    await _until_rework(handle, "waiting")
    await handle.signal(PullRequestWorkflow.looked, PullRequestNews(url=_URL, state="merged"))


def _news(event_id: str) -> PullRequestNews:
    kind: Literal["checks", "review"] = "checks" if event_id.startswith("checks") else "review"
    event = ReworkEvent(id=event_id, kind=kind, title=f"{kind} of {event_id}")
    return PullRequestNews(url=_URL, state="open", events=(event,))


def _over_budget(call: StepCall) -> StepResult:
    return ended(call, Verdict.OVER_BUDGET, _SPENT.message, budget_wait=_SPENT)


def _mended(call: StepCall) -> StepResult:
    return done(call, "Mended.", commit_sha="badc0de")


def _moved(call: StepCall) -> StepResult:
    return ended(call, Verdict.UNPROVEN, "The branch has moved.")


async def _works_until_cancelled(call: StepCall) -> StepResult:
    try:
        while True:
            activity.heartbeat()
            await asyncio.sleep(0.1)
    except asyncio.CancelledError:
        rescue = Rescue(snapshot="wo/0009-rescue", reason="cancelled")
        return ended(call, Verdict.CANCELLED, "cancelled", rescues=(rescue,))


_STATE: Final = BoardState(
    waiting=(("wo-waits", "app", 3, 1.0),),
    holders=(("wo-gone", "app"),),
    hosts=(("one", 1, 4e9),),
    project_limit=4,
)
BOARDS: Final[dict[str, tuple[tuple[BoardState, ...], Event]]] = {
    "seats": ((), _seats),
    "gone-on": ((_STATE,), _gone_on),
}
"""By name: what a board begins with, and what happens to it."""
WATCHES: Final[dict[str, Event]] = {
    "merged": _merged,
    "blocked-and-done": _blocked_and_done,
    "cancelled": _cancelled,
    "seen-by-host": _seen_by_host,
    "taken-over": _taken_over,
    "seen-early": _told_early,
    "nudged-early": _told_early,
    "followed": _followed,
    "rework-ended": _rework_ended,
    "round-over-budget": _round_over_budget,
}
"""By name: what happens to a watch."""
_FOLLOWED: Final = frozenset({"followed", "rework-ended", "round-over-budget"})
"""Those that an agent follows."""
_BY_HOST: Final = frozenset({"seen-by-host", "taken-over", "seen-early", "nudged-early"}) | _FOLLOWED
"""Those that a host looks at by itself."""
_EARLY: Final[dict[str, tuple[str, list[PullRequestNews]]]] = {
    "seen-early": ("looked", [PullRequestNews(url=_URL, state="merged")]),
    "nudged-early": ("nudge", []),
}
"""By name: the signal with which a watch starts."""


async def history_of_board(client: Client, name: str) -> WorkflowHistory:
    """Let a board do its work on a real server, and return its history."""

    @activity.defn(name="find_closed")
    async def find_closed(known: KnownOrders) -> list[str]:
        return list(known.ids)

    @activity.defn(name="find_waiting")
    async def find_waiting(_known: KnownOrders) -> WaitingOrders:
        return WaitingOrders()

    state, event = BOARDS[name]
    async with Worker(
        client, task_queue=QUEUE, workflows=[Board], activities=[find_closed, find_waiting], identity="recorder"
    ):
        handle = await client.start_workflow(Board.run, args=state, id=f"{name}-board", task_queue=QUEUE)
        await event(handle, Doubles(QUEUE))
        return await handle.fetch_history()


async def history_of_watch(client: Client, name: str) -> WorkflowHistory:
    """Let a watch run to its end on a real server, and return its history."""
    doubles = Doubles(QUEUE)
    signal, args = _EARLY.get(name, (None, []))
    if signal is not None:
        doubles.pull_requests[_URL] = "merged"
    watcher = WatchingHost(host="first", control_queue="first-control") if name in _BY_HOST else None
    task = Task(id=f"wo-{name}", repository_url="/app", pr_url=_URL, status=Status.COMPLETED, stage=Stage.REVIEW)
    async with Worker(
        client,
        task_queue=QUEUE,
        workflows=[PullRequestWorkflow],
        activities=doubles.activities(),
        identity="recorder",
    ):
        handle = await client.start_workflow(
            PullRequestWorkflow.run,
            PullRequestWatch(
                task=task, forge="local", watcher=watcher, follow=_follow() if name in _FOLLOWED else None
            ),
            id=f"{task.id}/pr",
            task_queue=QUEUE,
            start_signal=signal,
            start_signal_args=args,
        )
        await WATCHES[name](handle, doubles)
        with suppress(WorkflowFailureError):  # it may be cancelled
            await asyncio.wait_for(handle.result(), _WITHIN_SECONDS)
        return await handle.fetch_history()


def _follow() -> Follow:
    opening = OpenWorkspace(work_order_id="wo-followed", repository="/app")
    workspace = Doubles(QUEUE).workspace(opening)
    call = StepCall(
        step=Step.IMPLEMENT_PLAN,
        workspace=workspace,
        progress=Progress(branch_name="bug-1", commit_sha="c0ffee"),
        limits=Timeouts(heartbeat_seconds=2),
        session_id="session",
        starts_from="wo/0007-checkpoint",
    )
    return Follow(call=call, url=_URL)


async def _until(handle: Handle, words: str) -> None:
    await wait_until(lambda: handle.query("__temporal_workflow_metadata"), lambda told: words in str(told))
