"""Rows and schedules that are sealed with a missing key, with an earlier key, or not at all."""

import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import pytest_asyncio
from fakes.sealed import sealing, write_keys
from fakes.step_lab import settings_of
from fakes.waiting import wait_until
from structlog.testing import capture_logs
from temporalio.client import Client, ScheduleActionStartWorkflow, ScheduleHandle
from temporalio.testing import ActivityEnvironment

from activities.board.board import BoardActivities
from activities.workspaces.hosts import find_owner
from clients.executions.seals import SCHEDULE, seals_in_use
from clients.temporal.board import BoardRows
from clients.temporal.deliveries import nudge_followers
from clients.temporal.intakes import IntakeClient
from clients.temporal.work_orders import OrderFilter, WorkOrders
from septet.board import KnownOrders
from septet.contracts.forge_events import PullRequestTouched
from septet.contracts.intake import IntakeInput
from septet.contracts.names import FOLLOWS, WATCHER, Stage, watch_id
from septet.contracts.order import WorkOrderInput
from septet.contracts.pauses import QuotaPause, quota_id
from septet.contracts.pull_request_watch import WatchingHost
from septet.contracts.seal import key_id_of
from septet.contracts.task import Task
from septet.contracts.task_rows import MEMO
from septet.git.engine.address import parse_address
from septet.keys.key_ring import new_key_line
from workers.watching.accounts import FleetAccounts
from workers.watching.pull_request_list import list_watched
from workers.watching.schedules import schedule_id, schedule_janitor, seal_intakes_anew
from workflows.wire import search_attributes as by

pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass
class Team:
    """A team on a server that other teams use too, with its own keys."""

    client: Client
    queue: str
    ids: list[str] = field(default_factory=list)

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
            memo={MEMO: task, WATCHER: WatchingHost(host="h1", control_queue="q"), FOLLOWS: True},
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
    """A pause that cannot be opened does not stop an agent."""
    pause = QuotaPause(agent="claude", until=time.time() + 3600, message="limit reached")
    await FleetAccounts(theirs.client, ours.queue).note_pause("login", pause)
    accounts = FleetAccounts(ours.client, ours.queue)
    assert await accounts.find_pause("login") is None
    await accounts.note_pause("another", pause)
    assert await accounts.find_pause("another") == pause
    ours.ids += [quota_id(ours.queue, login) for login in ("login", "another")]
    await ours.leave()


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """The file of the keys; k1 seals."""
    return write_keys(tmp_path / "keys", "k1")


def put_first(keys: Path, key_id: str, *, alone: bool = False) -> None:
    """Let a new key seal from now on; with `alone`, remove the other keys."""
    others = "" if alone else keys.read_text(encoding="ascii")
    draft = keys.with_suffix(".draft")
    draft.write_text(f"{new_key_line(key_id)}\n{others}", encoding="ascii")
    draft.replace(keys)


async def keys_of(schedule: ScheduleHandle) -> set[str | None]:
    """Return the ids of the keys that seal a schedule's action; `None` for an unsealed payload."""
    action = (await schedule.describe()).schedule.action
    assert isinstance(action, ScheduleActionStartWorkflow)
    payloads = [*action.args, *([action.static_summary] if action.static_summary is not None else [])]
    return {key_id_of(each.metadata) for each in payloads}


@pytest.mark.parametrize("was_sealed", [True, False])
async def test_a_worker_seals_its_janitors_schedule_anew(
    sealed_client: Client, keys: Path, queue: str, tmp_path: Path, was_sealed: bool
) -> None:
    """A worker seals the schedule with the present key, also if the old key is lost or no key had sealed the schedule."""
    settings, host = settings_of(tmp_path), uuid.uuid4().hex
    first = sealing(sealed_client, keys) if was_sealed else sealed_client
    await schedule_janitor(first, settings, host, queue)
    schedule = sealed_client.get_schedule_handle(schedule_id(host))
    assert await keys_of(schedule) == {"k1" if was_sealed else None}
    put_first(keys, "k2", alone=True)
    own = sealing(sealed_client, keys, serves=True, required=True)
    await schedule_janitor(own, settings, host, queue)
    await wait_until(lambda: keys_of(schedule), lambda seen: seen == {"k2"})
    await schedule.delete()


@dataclass
class Intakes:
    """The intakes of one repository."""

    client: Client
    queue: str
    repository: str = field(default_factory=lambda: f"https://forge.example/o/{uuid.uuid4().hex}")
    schedules: list[ScheduleHandle] = field(default_factory=list)

    async def add(self, client: Client, label: str) -> ScheduleHandle:
        """Add an intake with a client."""
        asked = IntakeInput(repository=self.repository, label=label, every_seconds=86_400)
        added = await IntakeClient(client, self.queue).add(asked)
        self.schedules.append(self.client.get_schedule_handle(added.intake.id))
        return self.schedules[-1]

    async def are_listed(self) -> bool:
        """Say whether the server lists all of them."""
        listed = {each.id async for each in await self.client.list_schedules()}
        return {each.id for each in self.schedules} <= listed


@pytest_asyncio.fixture(loop_scope="session")
async def intakes(sealed_client: Client, queue: str) -> AsyncIterator[Intakes]:
    """The intakes of one repository, which are removed at the end."""
    made = Intakes(sealed_client, queue)
    yield made
    for each in made.schedules:
        await each.delete()


async def test_a_worker_seals_intakes_anew(
    sealed_client: Client, keys: Path, queue: str, intakes: Intakes, tmp_path: Path
) -> None:
    """The worker seals the intakes of its queue that it can open, also clear intakes, and keeps their input."""
    theirs = sealing(sealed_client, write_keys(tmp_path / "theirs", "k9"))
    own = sealing(sealed_client, keys, serves=True)
    ours, clear = await intakes.add(own, "ours"), await intakes.add(sealed_client, "clear")
    foreign = await intakes.add(theirs, "theirs")
    await wait_until(intakes.are_listed)
    put_first(keys, "k2")
    await seal_intakes_anew(own, f"{queue}-of-others")
    assert [await keys_of(each) for each in (ours, clear)] == [{"k1"}, {None}]
    await seal_intakes_anew(own, queue)
    await wait_until(lambda: keys_of(ours), lambda seen: seen == {"k2"})
    await wait_until(lambda: keys_of(clear), lambda seen: seen == {"k2"})
    assert await keys_of(foreign) == {"k9"}
    taken = await IntakeClient(own, queue).of_repository(parse_address(intakes.repository).key)
    assert {each.label for each in taken} == {"ours", "clear"}


async def test_what_a_worker_refuses_is_not_sealed_by_it(
    sealed_client: Client, keys: Path, queue: str, intakes: Intakes
) -> None:
    """A worker that refuses unsealed input leaves a clear intake unsealed, and seals the other intakes again."""
    own = sealing(sealed_client, keys, serves=True, required=True)
    ours, clear = await intakes.add(own, "ours"), await intakes.add(sealed_client, "clear")
    await wait_until(intakes.are_listed)
    put_first(keys, "k2")
    await seal_intakes_anew(own, queue)
    await wait_until(lambda: keys_of(ours), lambda seen: seen == {"k2"})
    assert await keys_of(clear) == {None}
    unsealed = {use.id for use in await seals_in_use(own) if use.began_unsealed}
    assert (clear.id in unsealed, ours.id in unsealed) == (True, False)


async def test_the_keys_of_open_work_and_of_schedules_are_told(
    sealed_client: Client, keys: Path, queue: str, intakes: Intakes, tmp_path: Path
) -> None:
    """A key stays in use until its workflow has closed and its schedule is sealed again; missing keys are listed too."""
    own, order = sealing(sealed_client, keys, serves=True), WorkOrderInput(repository="/app", title="Say hello")
    order_id = (await WorkOrders(own, queue).put(order)).id
    ours, host = await intakes.add(own, "ours"), uuid.uuid4().hex
    await schedule_janitor(own, settings_of(tmp_path), host, queue)
    await wait_until(intakes.are_listed)

    async def told(by: Client) -> dict[str, tuple[str, set[str], set[str], bool]]:
        return {
            use.id: (use.kind, set(use.keys), set(use.missing_keys), use.began_unsealed)
            for use in await seals_in_use(by)
        }

    named = (order_id, ours.id, schedule_id(host))
    await wait_until(lambda: told(own), lambda seen: set(named) <= set(seen))
    put_first(keys, "k2")
    await seal_intakes_anew(own, queue)
    await wait_until(lambda: keys_of(ours), lambda seen: seen == {"k2"})
    seen = await told(own)
    assert [seen[name] for name in named] == [
        ("WorkOrder", {"k1"}, set(), False),
        (SCHEDULE, {"k2"}, set(), False),
        (SCHEDULE, {"k1"}, set(), False),
    ]
    put_first(keys, "k3", alone=True)
    seen = await told(sealing(sealed_client, keys))
    assert [seen[name] for name in named] == [
        ("WorkOrder", {"k1"}, {"k1"}, False),
        (SCHEDULE, {"k2"}, {"k2"}, False),
        (SCHEDULE, {"k1"}, {"k1"}, False),
    ]
    await intakes.client.get_workflow_handle(order_id).terminate()
    await intakes.client.get_schedule_handle(schedule_id(host)).delete()
