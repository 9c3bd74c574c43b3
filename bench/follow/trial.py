"""The trial: a server, a worker that is killed again and again, three forges, and people."""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from typing import Final

import psutil
from fakes.forges.state import ForgeFake

from bench.faults.trial import FAKES, forge_environ, serving_forges
from bench.follow.person import WITHIN_SECONDS, MissedError, Person, bare_of, git
from bench.follow.scenes import CLOSED, SCENES, STUBBORN
from bench.histories import read_kept
from bench.stage import SEPTET, Stage, stage, worker
from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import Stage as TaskStage
from septet.contracts.order import WorkOrderInput
from septet.contracts.task import Task

_PROJECT: Final = "o/foo.js"
_AT_A_TIME: Final = 6
_KILL_SECONDS: Final = (4.0, 9.0)
_AGENT_SECONDS: Final = 2.0
_TRIES: Final = 2


@dataclass
class FollowOutcome:
    """The results of all pull requests."""

    seed: int
    runs: int
    scenes: dict[str, int] = field(default_factory=dict)
    merged: int = 0
    ended: dict[str, int] = field(default_factory=dict)
    """The pull requests that were not merged, by the reason of their watch's end."""
    rounds: int = 0
    kills: int = 0
    """The kills of the worker."""
    lost_pushes: int = 0
    """People's commits that a branch lacks at the end, and moves of a branch that removed a commit."""
    answered_twice: int = 0
    paid_again: int = 0
    """The agent turns beyond one for each try of a round."""
    stuck: int = 0
    histories_kb: dict[str, float] = field(default_factory=dict)
    """The kilobytes that the server keeps for each pull request, by type of workflow."""
    seconds: float = 0.0
    why: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Return whether nothing went wrong."""
        return not (self.lost_pushes or self.answered_twice or self.paid_again or self.stuck)

    def as_json(self) -> dict[str, object]:
        """Return the record of the outcome."""
        return asdict(self)


async def follow(runs: int, seed: int, *, most_kills: int | None) -> FollowOutcome:
    """Play the scenes on the three forges, several at a time, and count the failures.

    Args:
        runs: The number of pull requests.
        seed: Chooses the scenes' order and the moments of the kills.
        most_kills: The most kills; `None` kills every few seconds until the end.
    """
    outcome, began = FollowOutcome(seed, runs), time.monotonic()
    chance = random.Random(seed)  # noqa: S311 -- the same plan for the same seed is the point
    pairs = [(scene, fake.name) for scene in SCENES for fake in FAKES]
    chance.shuffle(pairs)
    async with stage() as on, serving_forges(on) as fakes:
        for fake in fakes.values():
            git(bare_of(fake), "config", "core.logAllRefUpdates", "true")
        environ = forge_environ(on, fakes) | _pace(on)
        async with _killed_worker(on, environ, outcome, chance, most_kills):
            places = asyncio.Semaphore(_AT_A_TIME)

            async def play(number: int) -> None:
                scene, forge = pairs[number % len(pairs)]
                async with places:
                    await _play(outcome, on, fakes[forge], scene, f"wo-p{number:03}")

            await asyncio.gather(*map(play, range(runs)))
            kept = await read_kept(on.client)
    outcome.histories_kb = {kind: round(size / runs / 1000, 1) for kind, size in kept.items()}
    outcome.seconds = round(time.monotonic() - began, 1)
    return outcome


def _pace(on: Stage) -> dict[str, str]:
    scenario = on.settings.state_dir.parent / "follow.json"
    steps = {"rework": {"delay_seconds": _AGENT_SECONDS}}
    scenario.write_text(json.dumps({"steps": steps}), encoding="utf-8")
    looks = {"SEPTET_LOOK_SECONDS": "0.5", "SEPTET_LONGEST_LOOK_SECONDS": "1"}
    agent = {"SEPTET_SCRIPTED_PATH": str(SEPTET.with_name("septet-scripted-agent"))}
    return {**looks, **agent, "SEPTET_SCRIPTED_SCENARIO": str(scenario)}


@asynccontextmanager
async def _killed_worker(
    on: Stage, environ: dict[str, str], outcome: FollowOutcome, chance: random.Random, most_kills: int | None
) -> AsyncIterator[None]:
    """Run a worker during the block; a killed worker gets a successor."""
    ended = asyncio.Event()

    async def run() -> None:
        while not ended.is_set():
            async with worker(on, environ) as process:
                with suppress(TimeoutError):
                    is_killed = most_kills is None or outcome.kills < most_kills
                    seconds = chance.uniform(*_KILL_SECONDS) if is_killed else None
                    await asyncio.wait_for(ended.wait(), seconds)
                if not ended.is_set():
                    with suppress(psutil.NoSuchProcess):
                        process.kill()
                    outcome.kills += 1

    working = asyncio.create_task(run())
    try:
        yield
    finally:
        ended.set()
        await working


async def _play(outcome: FollowOutcome, on: Stage, fake: ForgeFake, scene: str, order_id: str) -> None:
    try:
        person = await _open(on, fake, order_id)
        await SCENES[scene](person)
        task = await _end(on, person, scene)
    except (MissedError, TimeoutError) as error:
        outcome.stuck += 1
        shown = await WorkOrders(on.client).get(order_id)
        outcome.why.append(f"{scene}: {error!r}; {shown.stage} {shown.error} {shown.rework}")
        return
    outcome.scenes[scene] = outcome.scenes.get(scene, 0) + 1
    _judge(outcome, person, task)


async def _open(on: Stage, fake: ForgeFake, order_id: str) -> Person:
    """Let a work order complete, and return the person at its pull request."""
    issue = fake.add_issue(f"Tell that it is done: {order_id}", "A file should say so.")
    orders = WorkOrders(on.client)
    given = WorkOrderInput(repository=f"{fake.url}/{_PROJECT}.git", issue=issue, agent="scripted", follow_pr=True)
    await orders.put(given, order_id)
    await asyncio.wait_for(orders.wait(order_id), WITHIN_SECONDS)
    pull = next(pull for pull in fake.pulls.values() if f"septet: {order_id} " in pull.body)
    return Person(fake, pull, order_id, on.settings.state_dir / "runs" / order_id)


async def _end(on: Stage, person: Person, scene: str) -> Task:
    """Return the task once its watch has ended."""
    orders = WorkOrders(on.client)
    wanted = {STUBBORN: TaskStage.REVIEW, CLOSED: TaskStage.BLOCKED}.get(scene, TaskStage.DONE)
    async with asyncio.timeout(WITHIN_SECONDS):
        while True:
            task = await orders.get(person.order_id)
            if task.stage is wanted and task.rework is not None and task.rework.state == "ended":
                return task
            await asyncio.sleep(0.2)


def _judge(outcome: FollowOutcome, person: Person, task: Task) -> None:
    rework = task.rework
    rounds = rework.round if rework is not None else 0
    outcome.rounds += rounds
    if person.pull.state == "merged":
        outcome.merged += 1
    elif rework is not None:
        outcome.ended[rework.why] = outcome.ended.get(rework.why, 0) + 1
    if lost := [*person.lost_pushes(), *person.forced_pushes()]:
        outcome.lost_pushes += len(lost)
        outcome.why.append(f"{person.order_id}: lost {lost}")
    if twice := person.answered_twice():
        outcome.answered_twice += len(twice)
        outcome.why.append(f"{person.order_id}: answered twice {twice}")
    turns = list(person.runs.glob("8-rework-*"))
    tries = rounds * _TRIES if person.pushes else rounds
    if len(turns) > tries:
        outcome.paid_again += len(turns) - tries
        outcome.why.append(f"{person.order_id}: {len(turns)} turns for {rounds} rounds")
