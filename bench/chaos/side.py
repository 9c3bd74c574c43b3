"""The two sides of a trial: Septet, and a plain Temporal activity with the same agent."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from temporalio.client import WorkflowExecutionStatus
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from bench.chaos.evidence import blobs_in_tree, blobs_in_vaults
from bench.chaos.ground import Ground
from bench.chaos.journal import Life
from bench.chaos.ledgers import Ledger, settled_ledger
from bench.chaos.plan import BUDGET, HEARTBEAT_SECONDS, Kind, Plan
from bench.chaos.processes import Pid
from bench.stage import SEPTET
from clients.temporal.budgets import BudgetClient
from clients.temporal.work_orders import WorkOrders
from septet.budgets.account import LimitCall
from septet.contracts.amounts import parse_limit
from septet.contracts.order import Timeouts, WorkOrderInput
from septet.errors import AlreadyRunningError
from septet.system import processes

_PROMOTIONS = 20
_PROMOTE_SECONDS = 60.0
_PAUSE_SECONDS = 1.0


class Side(Protocol):
    """The system that runs work orders."""

    name: str

    def argv(self, ground: Ground) -> Sequence[str]:
        """Return the command of a worker."""

    async def start(self, ground: Ground, order: str, origin: Path) -> None:
        """Start a work order."""

    async def hang(self, ground: Ground, order: str) -> None:
        """Start a work order on the remote that never answers."""

    async def promote(self, ground: Ground, build: str) -> None:
        """Make the build of a serving worker current."""

    async def rungs(self, ground: Ground, order: str) -> list[str]:
        """Return the recoveries of the work order's steps, as the side reports them."""

    async def end_of(self, ground: Ground, order: str) -> str:
        """Return the end of a work order and its reason, as the side reports them; empty if it reports none."""

    async def ledger(self, ground: Ground, order: str) -> Ledger | None:
        """Return the count of its budget's account and its agents' use; `None` without an account."""

    async def raise_budgets(self, ground: Ground) -> dict[str, int]:
        """Raise the budgets that work orders wait for; return the tokens above each limit."""

    def kept(self, ground: Ground) -> set[str]:
        """Return git's ids of all contents that are kept beside the branches."""

    def carried_by(self, worker: Pid, life: Life) -> bool:
        """Return whether this worker process runs an agent."""

    def aims(self, kinds: Sequence[Kind]) -> tuple[Kind, ...]:
        """Return the kinds of kill that exist on this side."""


class Septet:
    """Septet."""

    name = "septet"

    def __init__(self, budget: str = BUDGET) -> None:
        """Give each work order this budget, and raise it by as much each time that it is used up."""
        self._budget = budget

    def argv(self, ground: Ground) -> Sequence[str]:
        """Return the command of a worker."""
        del ground
        return [str(SEPTET), "worker", "--json"]

    async def start(self, ground: Ground, order: str, origin: Path) -> None:
        """Start a work order."""
        await _start(ground, order, str(origin), self._budget)

    async def hang(self, ground: Ground, order: str) -> None:
        """Start a work order on the remote that never answers."""
        await _start(ground, order, ground.silent.url(order), self._budget)

    async def promote(self, ground: Ground, build: str) -> None:
        """Make a build current by the command of a release; the server or the worker may be away meanwhile.

        Raises:
            RuntimeError: The command failed at every try.
        """
        for _ in range(_PROMOTIONS):
            await ground.server.up.wait()
            argv = (str(SEPTET), "promote", build, "--json")
            done = await asyncio.to_thread(processes.run, argv, env=ground.env, timeout_seconds=_PROMOTE_SECONDS)
            if done.exit_code == 0:
                return
            await asyncio.sleep(_PAUSE_SECONDS)
        raise RuntimeError(f"{build} did not become current: {done.stdout.decode(errors='replace')}")

    async def rungs(self, ground: Ground, order: str) -> list[str]:
        """Return the recoveries of the work order's steps, as its task reports them."""
        task = await WorkOrders(ground.client).get(order)
        return [step.recovered_by for step in task.steps if step.recovered_by]

    async def end_of(self, ground: Ground, order: str) -> str:
        """Return its status with its error."""
        task = await WorkOrders(ground.client).get(order)
        return f"{task.status.value}: {task.error.message}" if task.error is not None else task.status.value

    async def ledger(self, ground: Ground, order: str) -> Ledger | None:
        """Return the count of its account, once a worker has reported all turns."""
        budgets = BudgetClient(ground.client)

        async def count() -> int:
            return (await budgets.show(order)).budget.total.tokens

        return await settled_ledger(order, ground.state, count)

    async def raise_budgets(self, ground: Ground) -> dict[str, int]:
        """Raise the used-up budgets; the default budget is never used up, so its accounts are not read."""
        if self._budget == BUDGET:
            return {}
        budgets, over = BudgetClient(ground.client), dict[str, int]()
        for view in (await budgets.list()).budgets:
            limit = parse_limit(view.limit)
            if view.waiting and limit.tokens is not None:
                over[view.scope.rpartition("/")[2]] = view.spent.tokens - int(limit.tokens)
                await budgets.raise_limit(view.scope, LimitCall(limit=self._budget))
        return over

    def kept(self, ground: Ground) -> set[str]:
        """Return the contents of the snapshots."""
        return blobs_in_vaults(ground.folder, ground.env)

    def carried_by(self, worker: Pid, life: Life) -> bool:
        """Return true: the one worker has attached to all agents."""
        del worker, life
        return True

    def aims(self, kinds: Sequence[Kind]) -> tuple[Kind, ...]:
        """Return all kinds."""
        return tuple(kinds)


async def _start(ground: Ground, order: str, repository: str, budget: str) -> None:
    limits = Timeouts(heartbeat_seconds=HEARTBEAT_SECONDS)
    given = WorkOrderInput(
        repository=repository, title=f"Work of {order}", agent="scripted", timeouts=limits, budget=budget
    )
    with suppress(AlreadyRunningError):  # the answer to an earlier try was lost
        await WorkOrders(ground.client).start(given, order)


class Naive:
    """A plain activity: one asyncio subprocess with a pipe, heartbeat, retry."""

    name = "naive"

    def argv(self, ground: Ground) -> Sequence[str]:
        """Return the command of a worker."""
        return [sys.executable, "-m", "bench.chaos.naive", ground.server.address, str(ground.state)]

    async def start(self, ground: Ground, order: str, origin: Path) -> None:
        """Start a work order."""
        given = [order, str(origin)]
        with suppress(WorkflowAlreadyStartedError):
            await ground.client.start_workflow("NaiveOrder", args=given, id=order, task_queue="naive")

    async def hang(self, ground: Ground, order: str) -> None:
        """Do nothing: its remotes are folders."""

    async def promote(self, ground: Ground, build: str) -> None:
        """Do nothing: it has no builds."""

    async def rungs(self, ground: Ground, order: str) -> list[str]:
        """Return an empty list: its only recovery is a retry."""
        del ground, order
        return []

    async def end_of(self, ground: Ground, order: str) -> str:
        """Return an empty text: Temporal reports the end."""
        del ground, order
        return ""

    async def ledger(self, ground: Ground, order: str) -> Ledger | None:
        """Return `None`: it counts no tokens."""
        del ground, order
        return None

    async def raise_budgets(self, ground: Ground) -> dict[str, int]:
        """Return nothing: it has no budgets."""
        del ground
        return {}

    def kept(self, ground: Ground) -> set[str]:
        """Return the contents of the clones: it keeps nothing else."""
        return blobs_in_tree(ground.state, ground.env)

    def carried_by(self, worker: Pid, life: Life) -> bool:
        """Return whether the agent is the worker's child."""
        return life.pid.parent == worker

    def aims(self, kinds: Sequence[Kind]) -> tuple[Kind, ...]:
        """Return the kinds without those that it lacks, such as kills of supervisors, proxies and builds."""
        lacking = {"supervisor", "stall", "proxy", "host", "hang", "slow-disk", "upgrade"}
        return tuple(kind for kind in kinds if kind not in lacking)


def sides(plan: Plan, *, naive: bool) -> list[Side]:
    """Return the sides of a trial: Septet and, if requested and possible, the baseline."""
    septet, baseline = Septet(plan.budget), Naive()
    return [septet, baseline] if naive and baseline.aims(plan.kinds) else [septet]


async def is_closed(ground: Ground, order: str) -> bool:
    """Return whether a work order has ended; false while the server is away."""
    try:
        description = await ground.client.get_workflow_handle(order).describe()
    except RPCError:
        return False
    return description.status is not WorkflowExecutionStatus.RUNNING
