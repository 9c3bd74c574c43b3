"""Lists with a row that is sealed with a missing key: the lists still show the other rows."""

import time
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.sealed import sealing, write_keys
from fakes.waiting import wait_until
from structlog.testing import capture_logs
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from activities.board.board import BoardActivities
from activities.workspaces.sweep_host import find_owner
from clients.temporal.board import BoardRows
from clients.temporal.deliveries import nudge_followers
from clients.temporal.intakes import IntakeClient
from clients.temporal.work_orders import OrderFilter, WorkOrders
from septet.contracts.board import MEMO, KnownOrders
from septet.contracts.budget import QuotaPause, quota_id
from septet.contracts.forge_events import PullRequestTouched
from septet.contracts.intake import IntakeInput
from septet.contracts.names import FOLLOWS, WATCHER, Stage, watch_id
from septet.contracts.order import WorkOrderInput
from septet.contracts.pull_request import WatchingHost
from septet.contracts.task import Task
from septet.git.engine.address import parse_address
from septet.telemetry.metrics import PAUSED_LOGINS
from septet.telemetry.recorder import Recorder
from workers.watching.accounts import FleetAccounts
from workers.watching.amount_metrics import AmountMetrics
from workers.watching.pull_request_list import list_watched
from workflows.wire import search_attributes as by

pytestmark = pytest.mark.asyncio(loop_scope="session")

HERE = WatchingHost(host="h1", control_queue="q")


class Team:
    """A team on a server that other teams use too, with its own keys."""

    def __init__(self, client: Client, queue: str) -> None:
        """Write and read with this client."""
        self.client, self.queue = client, queue
        self.ids: list[str] = []

    async def put(self, project: str) -> str:
        """Put a work order on the board, and return its id."""
        order = WorkOrderInput(repository="/app", title="Totals are wrong", project=project, stage="triaged")
        task = await WorkOrders(self.client, self.queue).put(order)
        self.ids.append(task.id)
        return task.id

    async def watch(self, order_id: str, url: str) -> str:
        """Start the watch of a pull request that an agent follows, and return the watch's id."""
        task = Task(id=order_id, repository_url="/app", pr_url=url, stage=Stage.REVIEW, title="Totals are wrong")
        started = await self.client.start_workflow(
            "PullRequest",
            id=watch_id(order_id),
            task_queue=self.queue,
            memo={MEMO: task, WATCHER: HERE, FOLLOWS: True},
            search_attributes=by.start_attributes(task),
        )
        self.ids.append(started.id)
        return started.id

    async def leave(self) -> None:
        """Terminate all started workflows."""
        for each in self.ids:
            await self.client.get_workflow_handle(each).terminate()


@pytest.fixture
def queue() -> str:
    return f"queue-{uuid.uuid4().hex}"


@pytest.fixture
def ours(sealed_client: Client, queue: str, tmp_path: Path) -> Team:
    """The team that reads the lists; its key is k1."""
    return Team(sealing(sealed_client, write_keys(tmp_path / "ours", "k1")), queue)


@pytest.fixture
def theirs(sealed_client: Client, queue: str, tmp_path: Path) -> Team:
    """The other team, which seals with k9."""
    return Team(sealing(sealed_client, write_keys(tmp_path / "theirs", "k9")), queue)


async def test_the_board_and_the_list_show_what_is_clear_of_a_row_that_cannot_be_opened(
    ours: Team, theirs: Team, sealed_client: Client
) -> None:
    """The row's title names the missing key; without any key, each row's title does."""
    project = uuid.uuid4().hex
    own, other = await ours.put(project), await theirs.put(project)

    async def titles(client: Client) -> list[dict[str, str]]:
        tasks = (await WorkOrders(client, ours.queue).list(OrderFilter(repository=project))).tasks
        rows = (await BoardRows(client).rows(project)).tasks
        return [{task.id: task.title for task in tasks}, {row.id: row.title for row in rows}]

    # A work order may become visible between the two queries.
    told = await wait_until(lambda: titles(ours.client), lambda told: [*map(len, told)] == [2, 2])
    assert told == [{own: "Totals are wrong", other: "(sealed with key k9)"}] * 2
    assert await titles(sealed_client) == [{own: "(sealed with key k1)", other: "(sealed with key k9)"}] * 2
    at_work = ActivityEnvironment(client=ours.client)
    at_work.info = replace(ActivityEnvironment.default_info(), task_queue=ours.queue)
    waiting = await at_work.run(BoardActivities().find_waiting, KnownOrders(limit=9))
    assert {each.id for each in waiting.waiting} == {own, other}
    for team in (ours, theirs):
        await team.leave()


async def test_pull_requests_are_watched_beside_one_that_cannot_be_opened(ours: Team, theirs: Team) -> None:
    """The log names the sealed watch; only our agent gets a nudge, and a host keeps the sealed watch's workspace."""
    name = uuid.uuid4().hex
    url, (own_id, other_id) = f"https://forge.example/o/{name}/pull/1", (f"wo-{name}-{each}" for each in "ab")
    own, other = await ours.watch(own_id, url), await theirs.watch(other_id, url)

    async def watched() -> set[str]:
        return {each.workflow_id async for each in list_watched(ours.client, ours.queue)}

    with capture_logs() as lines:
        await wait_until(watched, lambda seen: own in seen)
        await wait_until(
            lambda: ours.client.count_workflows(f'SeptetPullRequest="{url}"'), lambda seen: seen.count == 2
        )
        assert await watched() == {own}
    assert (lines[-1]["event"], lines[-1]["watches"]) == ("watches_not_opened", [other])
    review = PullRequestTouched(forge="github", repository=url, url=url, look="followers")
    assert await nudge_followers(ours.client, review, "digest") == (own,)
    assert (await find_owner(ours.client, other_id)).status == "running"
    for team in (ours, theirs):
        await team.leave()


async def test_intakes_are_listed_beside_one_that_cannot_be_opened(ours: Team, theirs: Team) -> None:
    """A sealed intake can be removed, and a webhook goes to the intakes that can be read."""
    repository = f"https://forge.example/o/{uuid.uuid4().hex}"
    own, other = (IntakeClient(team.client, ours.queue) for team in (ours, theirs))
    names = [
        (await intakes.add(IntakeInput(repository=repository, label=label, every_seconds=3600))).intake.id
        for intakes, label in ((own, "one"), (other, "two"))
    ]

    async def listed() -> dict[str, tuple[str, int]]:
        return {each.id: (each.repository, each.every_seconds) for each in (await own.list()).intakes}

    await wait_until(listed, lambda seen: set(names) <= set(seen))
    seen = await listed()
    assert [seen[name] for name in names] == [(repository, 3600), ("(sealed with key k9)", 3600)]
    assert [each.label for each in await own.of_repository(parse_address(repository).key)] == ["one"]
    for name in names:
        await own.remove(name)


async def test_a_pause_that_cannot_be_opened_is_none(ours: Team, theirs: Team) -> None:
    """A pause that cannot be opened does not stop an agent, and does not count among the pauses."""
    values = dict[str, float]()
    recorder = Recorder()
    recorder.send_to(lambda metric, value, _: values.update({metric.name: value}))
    pause = QuotaPause(agent="claude", until=time.time() + 3600, message="limit reached")
    await FleetAccounts(theirs.client, ours.queue).note_pause("login", pause)
    accounts = FleetAccounts(ours.client, ours.queue)
    assert await accounts.find_pause("login") is None
    await accounts.note_pause("another", pause)
    assert await accounts.find_pause("another") == pause
    metrics = AmountMetrics(ours.client, ours.queue, recorder)

    async def paused() -> float | None:
        await metrics.look()
        return values.get(PAUSED_LOGINS.name)

    await wait_until(
        lambda: ours.client.count_workflows(f'TaskQueue="{ours.queue}"'), lambda found: found.count == 2
    )
    assert await paused() == 1
    ours.ids += [quota_id(ours.queue, login) for login in ("login", "another")]
    await ours.leave()
