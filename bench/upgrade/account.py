"""The results of a trial's work: nothing stuck, nothing lost, as many agent starts as steps."""

from dataclasses import dataclass

from rich.table import Table
from temporalio.client import WorkflowExecutionStatus

from bench.upgrade.acts import Trial
from bench.upgrade.work import STEPS
from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import Status

_ONCE = [f"{step.number}-{step.value}-1" for step in STEPS]
_BOARD = "septet-board"


@dataclass(frozen=True, slots=True)
class Account:
    """The figures of a trial."""

    orders: int
    completed: int
    with_pull_request: int
    pipelines: int
    pipelines_completed: int
    stuck: int
    """The workflows of any kind that stand still at the end."""
    starts: int
    steps: int

    @property
    def broken(self) -> list[str]:
        """Return the failures in words."""
        return [
            words
            for words, holds in (
                (f"{self.orders - self.completed} work orders are not completed", self.completed == self.orders),
                (
                    f"{self.orders - self.with_pull_request} work orders have no pull request",
                    self.with_pull_request == self.orders,
                ),
                (
                    f"{self.pipelines - self.pipelines_completed} pipelines are not completed",
                    self.pipelines_completed == self.pipelines,
                ),
                (f"{self.stuck} workflows are stuck", self.stuck == 0),
                (f"{self.starts} starts of agents for {self.steps} steps", self.starts == self.steps),
            )
            if not holds
        ]


async def account_of(trial: Trial) -> Account:
    """Read the results of all work from the server and the host's disk; name each failed work order."""
    work = trial.work
    orders = WorkOrders(trial.client, work.queue)
    tasks = [await orders.get(name) for name in work.orders]
    for task in tasks:
        if task.status is not Status.COMPLETED:
            trial.broken.append(f"{task.id} is {task.status.value}: {task.stuck or task.error}")
        elif (starts := work.starts(task.id)) != _ONCE:
            trial.broken.append(f"{task.id} has the runs {', '.join(starts)}")
    return Account(
        orders=len(tasks),
        completed=sum(task.status is Status.COMPLETED for task in tasks),
        with_pull_request=sum(task.pr_url is not None for task in tasks),
        pipelines=len(work.pipelines),
        pipelines_completed=sum(
            [await work.status(name) is WorkflowExecutionStatus.COMPLETED for name in work.pipelines]
        ),
        stuck=await _stuck(trial),
        starts=sum(len(work.starts(name)) for name in work.orders),
        steps=len(tasks) * len(STEPS),
    )


async def _stuck(trial: Trial) -> int:
    """Return the number of the queue's open workflows, also the board, whose workflow task fails."""
    orders, stuck = WorkOrders(trial.client, trial.work.queue), 0
    query = f'TaskQueue="{trial.work.queue}" AND ExecutionStatus="Running"'
    async for row in trial.client.list_workflows(query):
        description = await trial.client.get_workflow_handle(row.id).describe()
        if (cause := await orders.stuck_cause(description)) is not None:
            trial.broken.append(f"{row.id}: {cause}")
            stuck += 1
    return stuck


def tables(trial: Trial, account: Account) -> tuple[Table, Table]:
    """Return the tables of the acts and of the results."""
    acts = Table(title="Acts", title_justify="left")
    for heading in ("act", "current build", "work orders under way", "seconds"):
        acts.add_column(heading)
    for act in trial.acts:
        acts.add_row(act.name, act.current, str(act.in_flight), f"{act.seconds:.0f}")
    results = Table(title="Results", title_justify="left")
    for heading in ("", "seen", "to be"):
        results.add_column(heading)
    for name, seen, wanted in (
        ("work orders completed", account.completed, account.orders),
        ("with a pull request", account.with_pull_request, account.orders),
        ("pipelines completed", account.pipelines_completed, account.pipelines),
        ("stuck workflows, board and janitor among them", account.stuck, 0),
        ("starts of agents, one for each step", account.starts, account.steps),
    ):
        results.add_row(name, str(seen), str(wanted))
    return acts, results
