"""The blows: each kills something, restarts what a machine would restart, and is recorded."""

import asyncio
import json
import random
import shutil
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field

from temporalio.service import RPCError

from bench.chaos.adoptions import Followed, attached_at
from bench.chaos.ground import Ground, Worker
from bench.chaos.journal import Life
from bench.chaos.kills import Adoption, Kill
from bench.chaos.plan import DEADLY, DEATHS_BORNE, Kind, Plan
from bench.chaos.processes import NOBODY, Pid, of_folder, supervisor_of
from bench.chaos.proxies import is_replaced, proxy_of
from bench.chaos.results import has_result
from bench.chaos.side import Side
from bench.chaos.slow_disk import slow_disk_of
from septet.errors import SeptetError

_SERVER_AWAY_SECONDS = (0.3, 4.0)
_STALL_SECONDS = 3.0
_SERVED_SECONDS = 1.0
"""The least seconds for which a worker serves: otherwise a slow machine would only start workers."""
_TOOL_SECONDS = 3.0
_LOOK_SECONDS = 0.05
_BOTH_SECONDS = 5.0
"""The seconds for which a woken worker and its successor serve together."""


@dataclass
class Blows:
    """Kills on one ground. A blow that would hit no living agent is not struck."""

    ground: Ground
    side: Side
    plan: Plan
    chance: random.Random
    beside: asyncio.TaskGroup
    """The group of tasks that take long."""
    kills: list[Kill] = field(default_factory=list)
    adoptions: list[Adoption] = field(default_factory=list)
    hanging: list[str] = field(default_factory=list)
    """The work orders that hang on a remote."""
    unreplaced: list[str] = field(default_factory=list)
    """The agents that got no new proxy."""
    _deaths: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The deaths of agents, by work order and step."""
    _partitions: int = 0
    _hosts_lost: int = 0
    _builds: int = 0
    _swapping: bool = False
    """Whether a build has yet to become current."""
    _parted: list[Followed] = field(default_factory=list)
    """The agents that a worker followed when it was stopped."""

    async def strike(self, kind: Kind) -> None:
        """Strike a blow of a kind if it would hit something."""
        if kind in {"worker", "restart"}:
            await self.worker(kind)
            return
        lasting = {
            "server": self.server,
            "partition": self.partition,
            "host": self.host,
            "hang": self.hang,
            "slow-disk": self.slow_disk,
            "upgrade": self.upgrade,
        }
        await (lasting[kind]() if kind in lasting else self.one(kind))

    async def one(self, kind: Kind) -> None:
        """Hit an agent, its supervisor, proxy or tool; wait for a tool, which works for moments only."""
        deadline = time.monotonic() + (_TOOL_SECONDS if kind == "tool" else 0.0)
        while not (living := self._bearing(kind)):
            if time.monotonic() >= deadline:
                return
            await asyncio.sleep(_LOOK_SECONDS)
        life = self.chance.choice(living)
        aim = _aim(kind, life)
        if self._there(life) and aim.signal(signal.SIGSTOP if kind == "stall" else signal.SIGKILL):
            self._deaths[life.order, life.step] += kind in DEADLY
            cut_short = kind in DEADLY and not has_result(self.ground.state / "runs", life)
            self._note(kind, [life], target=life.name, cut_short=cut_short)
            if kind == "stall":
                self.beside.create_task(_let_go_on(aim))
            if kind == "proxy":
                self.beside.create_task(self._see_replaced(life, aim))

    async def worker(self, kind: Kind) -> None:
        """End the worker, by SIGKILL or SIGTERM, and start its successor at once."""
        worker = self.ground.workers[-1]
        hits = self._carried_by(worker)
        if not worker.ready or not self._worth(hits) or time.time() - worker.ready_at < _SERVED_SECONDS:
            return
        runs = [Followed.now(life) for life in hits]
        self._note(kind, hits)
        await worker.end(signal.SIGKILL if kind == "worker" else signal.SIGTERM)
        started = self.beside.create_task(worker.start())
        for run in runs:
            self.beside.create_task(self._see_adopted(kind, run, worker, started))

    async def upgrade(self) -> None:
        """End the worker by SIGTERM, start a worker of another build, and make that build current."""
        worker = self.ground.workers[-1]
        hits = self._carried_by(worker)
        if not worker.ready or not self._worth(hits) or self._parted or self._swapping:
            return
        self._note("upgrade", hits)
        self._builds, self._swapping = self._builds + 1, True
        build = f"chaos-{self._builds}"
        self.ground.name_build(build)
        await worker.end(signal.SIGTERM)
        worker.env = self.ground.env

        async def swap() -> None:
            await worker.start()
            await self.side.promote(self.ground, build)
            self._swapping = False

        self.beside.create_task(swap())

    async def server(self) -> None:
        """Kill the server, and start it again after a while on the same database."""
        server, living = self.ground.server, self.ground.journal.living()
        if not server.up.is_set() or not self._worth(living):
            return
        away = self.chance.uniform(*_SERVER_AWAY_SECONDS)
        self._note("server", living)
        await server.kill()

        async def come_back() -> None:
            await asyncio.sleep(away)
            await server.start()

        self.beside.create_task(come_back())

    async def partition(self) -> None:
        """Stop the worker for a long time while a successor serves; then let both serve for a while."""
        worker = self.ground.workers[-1]
        hits = self._carried_by(worker)
        if not worker.ready or not hits or self._partitions >= self.plan.partitions or self._parted:
            return
        self._partitions += 1
        self._parted = [Followed.now(life) for life in hits]
        worker.pid.signal(signal.SIGSTOP)
        self._note("partition", hits)
        successor = Worker(worker.argv, worker.env, worker.folder, worker.server)
        self.ground.workers.append(successor)
        self.beside.create_task(successor.start())
        self.beside.create_task(self._wake(worker))

    async def host(self) -> None:
        """Kill all processes of the host and remove its state directory; another host serves after that."""
        worker, lost = self.ground.workers[-1], self.ground.state
        hits = self._carried_by(worker)
        if not worker.ready or not hits or self._hosts_lost >= self.plan.partitions or self._parted:
            return
        self._hosts_lost += 1
        self._note("host", hits)
        self.ground.move()
        await worker.end(signal.SIGKILL)
        while left := of_folder(lost):
            for pid in left:
                pid.signal(signal.SIGKILL)
            await asyncio.sleep(_LOOK_SECONDS)
        await asyncio.to_thread(shutil.rmtree, lost)
        worker.env = self.ground.env
        self.beside.create_task(worker.start())

    async def hang(self) -> None:
        """Start work orders on a remote that accepts and never answers; they hang until the end of the trial."""
        living = self.ground.journal.living()
        if not self.ground.server.up.is_set() or not self._worth(living) or self._has_struck_often("hang"):
            return
        self._note("hang", living)
        for _ in range(self.plan.hanging):
            order = f"hangs-{len(self.hanging):03}"
            with suppress(RPCError, SeptetError):  # the server was killed meanwhile
                await self.side.hang(self.ground, order)
                self.hanging.append(order)

    async def end_hanging(self) -> None:
        """Terminate the hanging work orders."""
        for order in self.hanging:
            with suppress(RPCError):  # the work order has failed, as it should after this many tries
                await self.ground.client.get_workflow_handle(order).terminate()

    async def slow_disk(self) -> None:
        """Slow the worker's disk down for a while."""
        worker = self.ground.workers[-1]
        hits = self._carried_by(worker)
        if not worker.ready or not self._worth(hits) or self._has_struck_often("slow-disk"):
            return
        self._note("slow-disk", hits)
        self.beside.create_task(slow_disk_of(worker.pid, self.plan.slow_seconds))

    def _has_struck_often(self, kind: Kind) -> bool:
        """Return whether a lasting kind has struck as often as allowed in one trial."""
        return sum(kill.kind == kind for kill in self.kills) >= self.plan.partitions

    async def _wake(self, worker: Worker) -> None:
        await asyncio.sleep(self.plan.partition_seconds)
        worker.pid.signal(signal.SIGCONT)
        self._parted = []
        await asyncio.sleep(_BOTH_SECONDS)
        await worker.end(signal.SIGTERM)
        self.ground.workers.remove(worker)

    async def _see_adopted(self, kind: Kind, run: Followed, worker: Worker, started: "asyncio.Task[None]") -> None:
        at = await attached_at(run, lambda: started.done() and not worker.ready)
        await asyncio.wait([started])
        if at is not None and worker.ready:
            self.adoptions.append(Adoption(kind, max(at - worker.ready_at, 0.0)))

    async def _see_replaced(self, life: Life, proxy: Pid) -> None:
        if not await is_replaced(life, proxy):
            self.unreplaced.append(life.name)

    def _worth(self, hits: list[Life]) -> bool:
        """Return whether a blow that would hit these agents is struck."""
        return bool(hits)

    def _there(self, life: Life) -> bool:
        """Return whether an agent can still be hit."""
        return life.lives

    def _bearing(self, kind: Kind) -> list[Life]:
        """Return the living agents that can be hit and whose work orders survive the hit."""
        living = self.ground.journal.living()
        if kind == "tool":
            return [life for life in living if any(tool.lives for tool in life.tools[-1:])]
        if kind in {"proxy", "stall"}:
            return living
        return [life for life in living if self._deaths[life.order, life.step] < DEATHS_BORNE]

    def _carried_by(self, worker: Worker) -> list[Life]:
        """Return the living agents that a worker has attached to, without those of a stopped worker."""
        stalled = {run.life.name for run in self._parted if not run.attached_again}
        living = [life for life in self.ground.journal.living() if life.name not in stalled]
        return [life for life in living if self.side.carried_by(worker.pid, life)]

    def _note(self, kind: Kind, lives: list[Life], target: str = "", *, cut_short: bool = False) -> None:
        kill = Kill(kind, time.time(), frozenset(life.name for life in lives), target, cut_short)
        self.kills.append(kill)
        with (self.ground.folder / "kills.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps({**asdict(kill), "hits": sorted(kill.hits)}) + "\n")


async def _let_go_on(pid: Pid) -> None:
    await asyncio.sleep(_STALL_SECONDS)
    pid.signal(signal.SIGCONT)


def _aim(kind: Kind, life: Life) -> Pid:
    """Return the process that a kind of kill hits."""
    if kind == "tool":
        return life.tools[-1] if life.tools else NOBODY
    if kind == "proxy":
        return proxy_of(life.pid)
    return life.pid if kind == "agent" else supervisor_of(life.pid)
