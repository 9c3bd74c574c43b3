"""The trial: a server, a worker, three forges, and work orders that meet faults."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Final

import httpx
from fakes.forges.gitea import GiteaFake
from fakes.forges.github import GitHubFake
from fakes.forges.gitlab import GitLabFake
from fakes.forges.serving import serving_forge
from fakes.forges.state import ForgeFake

from bench.faults.plan import PlannedOrder, faults_of, plan
from bench.repository import make_repository
from bench.stage import Stage, scratch, stage, worker
from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import Status, Step
from septet.contracts.order import WorkOrderInput
from septet.contracts.task import Task
from septet.forges.values import marker_of

FAKES: Final[tuple[type[ForgeFake], ...]] = (GitHubFake, GitLabFake, GiteaFake)
_PROJECT: Final = "o/foo.js"
_FORK: Final = "me/foo.js"
_AT_A_TIME: Final = 16
_LONG_AT_A_TIME: Final = 66
"""The simultaneous long work orders: they have no agent while they wait, and take no place from others."""
_ORDER_SECONDS: Final = 600.0
"""The seconds after which a work order counts as stuck."""
_NAIVE_TRIES: Final = 5
_GOOD: Final = range(200, 300)


@dataclass
class Outcome:
    """The results of all work orders."""

    seed: int
    runs: int
    faults: dict[str, int] = field(default_factory=dict)
    """The number of times that each fault was met, by `forge: kind`."""
    unmet: int = 0
    """The planned faults that no request met."""
    duplicates: int = 0
    """The work orders with more than one pull request."""
    stuck: int = 0
    """The work orders that did not complete."""
    lost: int = 0
    """The work orders whose pull request is not at their commit, or lacks their mark."""
    paid_again: int = 0
    """The agent turns beyond one for each step."""
    naive: dict[str, int] = field(default_factory=dict)
    """The same faults on a step that creates without a search, and chooses a new branch at each retry."""
    why: list[str] = field(default_factory=list)
    """The errors of the work orders that did not complete."""

    @property
    def is_clean(self) -> bool:
        """Return whether nothing went wrong."""
        return not (self.unmet or self.duplicates or self.stuck or self.lost or self.paid_again)

    def as_json(self) -> dict[str, object]:
        """Return the record of the outcome."""
        return asdict(self)


async def try_faults(runs: int, seed: int) -> Outcome:
    """Run work orders through faults, and count the failures."""
    outcome = Outcome(seed, runs)
    orders = plan(runs, seed, tuple(fake.name for fake in FAKES))
    naive = asyncio.create_task(asyncio.to_thread(_naive, orders))
    async with stage() as on, serving_forges(on) as fakes:
        async with worker(on, forge_environ(on, fakes)):
            places = {True: asyncio.Semaphore(_LONG_AT_A_TIME), False: asyncio.Semaphore(_AT_A_TIME)}
            tasks = await asyncio.gather(
                *(_run(on, fakes[order.forge], order, places[order.waits_long]) for order in orders)
            )
        for order, task in zip(orders, tasks, strict=True):
            _judge(outcome, on, fakes[order.forge], order, task)
        outcome.naive = await naive
    return outcome


@asynccontextmanager
async def serving_forges(on: Stage) -> AsyncIterator[dict[str, ForgeFake]]:
    """Serve one fake of each forge during the block, each with its own repository."""
    with ExitStack() as stack:
        fakes = {}
        for fake in FAKES:
            repositories = on.settings.state_dir.parent / fake.name
            for project in (_PROJECT, _FORK):  # equal bytes give the same commits
                bare = repositories / f"{project}.git"
                bare.parent.mkdir(parents=True)
                await asyncio.to_thread(make_repository, bare, 20, 7, on.settings.git_env)
            made = fake(project=_PROJECT, repositories=repositories, protected=frozenset({"main"}))
            fakes[fake.name] = stack.enter_context(serving_forge(made))
        yield fakes


def forge_environ(on: Stage, fakes: dict[str, ForgeFake]) -> dict[str, str]:
    """Return the environment of a worker that knows the forges."""
    environ = {**on.environ, "SEPTET_LOOK_SECONDS": "3600", "SEPTET_SANDBOX": "none"}
    for name, fake in fakes.items():
        variable = f"SEPTET_{name.upper()}"
        environ |= {
            f"{variable}_HOSTS": fake.url.removeprefix("http://"),
            f"{variable}_API_URL": fake.url + fake.api_path,
            f"{variable}_TOKEN": fake.token,
        }
    return environ


async def _run(on: Stage, fake: ForgeFake, order: PlannedOrder, places: asyncio.Semaphore) -> Task | str:
    """Run a work order of its own issue; return its task, or the reason of a missing end."""
    async with places:
        issue = fake.add_issue(f"Tell that it is done: {order.id}", "A file should say so.")
        with fake.lock:
            fake.faults += faults_of(order)
        orders = WorkOrders(on.client)
        given = WorkOrderInput(
            repository=f"{fake.url}/{_PROJECT}.git",
            issue=issue,
            agent="scripted",
            push_to=_FORK if order.is_forked else None,
        )
        try:
            await orders.put(given, order.id)
            return await asyncio.wait_for(orders.wait(order.id), _ORDER_SECONDS)
        except TimeoutError:
            return f"{order}: {await orders.waiting_for(order.id)}"


def _judge(outcome: Outcome, on: Stage, fake: ForgeFake, order: PlannedOrder, task: Task | str) -> None:
    if any(fault.about == order.id for fault in fake.seen_faults):
        met = f"{order.forge}: {order.kind}"
        outcome.faults[met] = outcome.faults.get(met, 0) + 1
    else:
        outcome.unmet += 1
    pulls = [pull for pull in fake.pulls.values() if marker_of(order.id) in pull.body]
    outcome.duplicates += len(pulls) > 1
    started = [path for path in (on.settings.state_dir / "runs" / order.id).glob("[0-9]*-*") if path.is_dir()]
    outcome.paid_again += max(len(started) - len(Step), 0)
    if isinstance(task, str) or task.status is not Status.COMPLETED:
        outcome.stuck += 1
        outcome.why.append(task if isinstance(task, str) else f"{order}: {task.error}")
    elif [fake.sha(pull) for pull in pulls] != [task.commit_sha]:
        outcome.lost += 1
        outcome.why.append(f"{order}: its pull requests stand at {[fake.sha(pull) for pull in pulls]}")


def _naive(orders: Sequence[PlannedOrder]) -> dict[str, int]:
    """Return the results of the same faults on a step that creates without a search."""
    counts = {"duplicates": 0, "stuck": 0}
    with scratch(), ExitStack() as stack:
        fakes = {fake.name: stack.enter_context(serving_forge(fake(project=_PROJECT))) for fake in FAKES}
        client = stack.enter_context(httpx.Client(trust_env=False))
        for fake in fakes.values():
            fake.heads = {_PROJECT: {"main": "a" * 40}}
        for order in orders:
            fake = fakes[order.forge]
            # No fault of a push is met here, for nothing is pushed.
            fake.faults = [each for each in faults_of(order) if "git-" not in each.path]
            is_told = any(_naive_try(client, fake, f"{order.id}-{attempt}") for attempt in range(_NAIVE_TRIES))
            counts["stuck"] += not is_told
            counts["duplicates"] += sum(order.id in pull.head for pull in fake.pulls.values()) > 1
    return counts


def _naive_try(client: httpx.Client, fake: ForgeFake, head: str) -> bool:
    """Create a pull request of a new branch; return whether the answer confirms it."""
    fake.heads[_PROJECT][head] = "b" * 40
    title, path = {"title": "It is done", "body": ""}, f"/repos/{_PROJECT}/pulls"
    body = {**title, "head": head, "base": "main"}
    if fake.name == "gitlab":
        path = f"/projects/{_PROJECT.replace('/', '%2F')}/merge_requests"
        body = {"title": "It is done", "description": "", "source_branch": head, "target_branch": "main"}
    try:
        answer = client.post(
            fake.url + fake.api_path + path, json=body, headers={"Authorization": f"Bearer {fake.token}"}
        )
        return answer.status_code in _GOOD and isinstance(
            answer.json().get("number", answer.json().get("iid")), int
        )
    except (httpx.HTTPError, ValueError):
        return False
