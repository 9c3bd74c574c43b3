"""The workers of all hosts know a forge's spent limit: at most one request meets the limit."""

import asyncio
import time
import uuid
from typing import Any

import pytest
from fakes.waiting import wait_until
from temporalio.client import Client, WorkflowExecutionStatus

from septet.contracts.pauses import QuotaPause
from septet.errors import ForgeUnavailableError
from septet.forges.http.pauses import ForgePauses
from workers.watching.accounts import AccountNotReachedError, FleetAccounts, SharedForgePauses

pytestmark = pytest.mark.asyncio(loop_scope="session")

API = "https://api.example"


async def test_a_pause_ends_with_its_workflow(client: Client) -> None:
    """While its workflow runs each host knows the pause; after the workflow's end, requests to the forge pass again."""
    queue = f"queue-{uuid.uuid4().hex}"
    accounts, loop = FleetAccounts(client, queue), asyncio.get_running_loop()
    here, there = (ForgePauses(fleet=SharedForgePauses(accounts, loop)) for _ in range(2))
    await asyncio.to_thread(here.note, API, "key", 600.0)
    with pytest.raises(ForgeUnavailableError, match="takes no more requests for"):
        await asyncio.to_thread(there.check, API, "key", "an issue")
    await asyncio.to_thread(there.check, API, "another key", "an issue")
    await wait_until(lambda: client.count_workflows(f'TaskQueue="{queue}"'), lambda found: found.count == 1)
    (row,) = [row async for row in client.list_workflows(f'TaskQueue="{queue}"')]
    handle = client.get_workflow_handle(row.id)
    await handle.terminate()
    assert (await handle.describe()).status is WorkflowExecutionStatus.TERMINATED
    await asyncio.to_thread(ForgePauses(fleet=SharedForgePauses(accounts, loop)).check, API, "key", "an issue")


async def test_a_short_pause_and_one_that_is_known_are_not_told(client: Client) -> None:
    """Each signal costs Actions of Temporal: one signal is sent for a limit, not one for each request that meets it."""
    accounts: Any = Silent()
    pauses = ForgePauses(fleet=SharedForgePauses(accounts, asyncio.get_running_loop()))
    await asyncio.to_thread(pauses.note, API, "key", 2.0)
    assert accounts.told == []
    for _ in range(3):
        await asyncio.to_thread(pauses.note, API, "key", 600.0)
    assert len(accounts.told) == 1
    assert accounts.told[0].agent == "api.example"
    await asyncio.to_thread(pauses.note, API, "key", 1200.0)
    assert len(accounts.told) == 2


class Silent:
    """Accounts that know no pause; with `hangs` or `refuses`, a server that does not answer."""

    def __init__(self, *, hangs: bool = False, refuses: bool = False) -> None:
        self.hangs, self.refuses = hangs, refuses
        self.told: list[QuotaPause] = []
        self.asked = 0

    async def find_pause(self, login: str) -> QuotaPause | None:
        assert login.startswith("forge-")
        self.asked += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.refuses:
            raise AccountNotReachedError("It was not reached.")
        return None

    async def note_pause(self, login: str, pause: QuotaPause) -> None:
        assert login.startswith("forge-")
        self.told.append(pause)


@pytest.mark.parametrize("accounts", [Silent(hangs=True), Silent(refuses=True)], ids=["hangs", "refuses"])
async def test_a_server_that_does_not_answer_holds_up_no_request_to_a_forge(accounts: Any) -> None:
    """The pause is queried once, within seconds, and then not for a while; requests to the forge pass anyway."""
    pauses = ForgePauses(fleet=SharedForgePauses(accounts, asyncio.get_running_loop()))
    began = time.monotonic()
    for _ in range(5):
        await asyncio.to_thread(pauses.check, API, "key", "an issue")
    assert accounts.asked == 1
    assert time.monotonic() - began < 60


async def test_the_loop_of_a_worker_never_waits_for_itself() -> None:
    """A request to a forge on the worker's own loop does not query the server."""
    accounts: Any = Silent()
    ForgePauses(fleet=SharedForgePauses(accounts, asyncio.get_running_loop())).check(API, "key", "an issue")
    assert accounts.asked == 0
