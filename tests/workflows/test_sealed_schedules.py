"""Schedules after a rotation of keys: their later starts are sealed with the present key."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from fakes.sealed import sealing, write_keys
from fakes.step_lab import settings_of
from fakes.waiting import wait_until
from temporalio.client import Client, ScheduleActionStartWorkflow, ScheduleHandle

from clients.executions.seals import SCHEDULE, seals_in_use
from clients.temporal.intakes import IntakeClient
from clients.temporal.work_orders import WorkOrders
from septet.contracts.intake import IntakeInput
from septet.contracts.order import WorkOrderInput
from septet.contracts.seal import key_id_of
from septet.git.engine.address import parse_address
from septet.keys.key_ring import new_key_line
from workers.watching.intake_seals import seal_intakes_anew
from workers.watching.janitor import schedule_id, schedule_janitor

pytestmark = pytest.mark.asyncio(loop_scope="session")

CLEAR = None
"""The absence of a key's id."""


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """The file of the keys; k1 seals."""
    return write_keys(tmp_path / "keys", "k1")


@pytest.fixture
def queue() -> str:
    return f"queue-{uuid.uuid4().hex}"


def put_first(keys: Path, key_id: str, *, alone: bool = False) -> None:
    """Let a new key seal from now on; with `alone`, remove the other keys."""
    others = "" if alone else keys.read_text(encoding="ascii")
    draft = keys.with_suffix(".draft")
    draft.write_text(f"{new_key_line(key_id)}\n{others}", encoding="ascii")
    draft.replace(keys)


async def keys_of(schedule: ScheduleHandle) -> set[str | None]:
    """Return the ids of the keys that seal a schedule's action; `CLEAR` for an unsealed payload."""
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
    assert await keys_of(schedule) == {"k1" if was_sealed else CLEAR}
    put_first(keys, "k2", alone=True)
    own = sealing(sealed_client, keys, serves=True, required=True)
    await schedule_janitor(own, settings, host, queue)
    await wait_until(lambda: keys_of(schedule), lambda seen: seen == {"k2"})
    await schedule.delete()


class Intakes:
    """The intakes of one repository."""

    def __init__(self, client: Client, queue: str) -> None:
        """Begin without intakes."""
        self.client, self.queue = client, queue
        self.repository = f"https://forge.example/o/{uuid.uuid4().hex}"
        self.schedules: list[ScheduleHandle] = []

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
    assert [await keys_of(each) for each in (ours, clear)] == [{"k1"}, {CLEAR}]
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
    assert await keys_of(clear) == {CLEAR}
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
