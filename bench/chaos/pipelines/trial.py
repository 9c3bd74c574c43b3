"""One pipeline under kills."""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from temporalio.exceptions import WorkflowAlreadyStartedError

from bench.chaos.ground import Ground, ground
from bench.chaos.ledgers import Ledger
from bench.chaos.pipelines.laws import broken
from bench.chaos.pipelines.watch import Watch
from bench.chaos.plan import Kind, Plan
from bench.chaos.side import Septet
from bench.chaos.trial import Seen, Trial
from bench.chaos.warm_blows import WarmBlows
from septet.pipelines.inputs import PipelineInput, PipelineIssue
from septet.state import StateDir

KINDS: Final[tuple[Kind, ...]] = ("worker", "restart", "supervisor", "agent", "tool", "server")
ISSUES: Final = 20
USUAL: Final = Plan(runs=ISSUES, kinds=KINDS, every_seconds=1.5, step_seconds=0.6, patience_seconds=1800.0)
"""The usual plan, with short steps so that kills also hit between steps."""
_MOST_EXECUTORS: Final = 3


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of a trial."""

    seen: Seen
    executors: int
    looks: int
    """The polls of the documents of results."""
    broken: tuple[str, ...]
    """The broken laws, each with its evidence."""


class PipelineSide(Septet):
    """Septet, with a pipeline of a number of issues."""

    def __init__(self, issues: int, executors: int) -> None:
        """Take the numbers without starting."""
        super().__init__()
        self._issues, self._executors = issues, executors

    async def start(self, ground: Ground, order: str, origin: Path) -> None:
        """Start the pipeline."""
        issues = tuple(
            PipelineIssue(id=name, title=f"Work of {order}-{name}", body="Write the parts.")
            for name in issue_ids(self._issues)
        )
        given = PipelineInput(repository=str(origin), issues=issues, agent="scripted", executors=self._executors)
        with suppress(WorkflowAlreadyStartedError):  # the answer to an earlier try was lost
            await ground.client.start_workflow("Pipeline", given, id=order, task_queue="septet")

    async def ledger(self, ground: Ground, order: str) -> Ledger | None:
        """Return `None`: the pipeline's work orders have no budgets of their own."""
        del ground, order
        return None


class PipelineTrial(Trial):
    """A pipeline on a ground; the observed work orders are those of its issues."""

    def __init__(self, laid: Ground, side: PipelineSide, plan: Plan) -> None:
        """Take the parts without starting."""
        super().__init__(laid, side, plan)
        self.pipeline = f"pl-{plan.seed}"
        self.watch = Watch(StateDir(laid.state).pipelines / self.pipeline)

    def _blows(self, beside: asyncio.TaskGroup) -> WarmBlows:
        chance = random.Random(self.plan.seed)  # noqa: S311 -- to be done again
        return WarmBlows(self.ground, self.side, self.plan, chance, beside)

    async def _all_orders(self) -> None:
        over = asyncio.Event()
        async with asyncio.TaskGroup() as beside:
            beside.create_task(self.watch.until(over))
            await self._closed(self.pipeline)
            over.set()

    def _began(self, order: str) -> None:
        self.orders.extend(f"{order}-{name}" for name in issue_ids(self.plan.runs))

    def _origin(self, order: str) -> Path:
        del order
        return self.ground.origins[0]


def issue_ids(count: int) -> list[str]:
    """Return the ids of this many issues."""
    return [f"i{number:03}" for number in range(count)]


async def tried(plan: Plan) -> Tried:
    """Run a trial on its own ground; its seed also chooses the number of executors."""
    executors = 1 + plan.seed % _MOST_EXECUTORS
    async with ground(plan) as laid:
        trial = PipelineTrial(laid, PipelineSide(plan.runs, executors), plan)
        seen = await trial.carry_out()
        found = broken(laid, trial.watch, seen)
        return Tried(seen, executors, trial.watch.looks, found)
