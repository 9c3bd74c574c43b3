"""The workers of all hosts know a forge's spent limit: at most one request meets the limit."""

import asyncio
import json
import os
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from fakes.forges.connecting import settings_for
from fakes.forges.gitea import GiteaFake
from fakes.forges.github import GitHubFake
from fakes.forges.gitlab import GitLabFake
from fakes.forges.serving import serving_forge
from fakes.forges.state import Fault, ForgeFake
from fakes.waiting import wait_until
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.testing import WorkflowEnvironment

from septet.contracts.budget import AccountState, Grant, QuotaPause, ReserveCall, SettleCall
from septet.errors import ForgeUnavailableError
from septet.forges.http.pauses import PAUSES, ForgePauses
from workers.watching.accounts import AccountNotReachedError, FleetAccounts
from workers.watching.forge_pauses import SharedForgePauses, sharing_forge_pauses

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROOT = Path(__file__).parents[2]
API = "https://api.example"
HOST = """
import asyncio, json, sys
from concurrent.futures import ThreadPoolExecutor
from temporalio.client import Client
from septet.errors import ForgeUnavailableError
from septet.forges.choose import forge_for
from septet.git.engine.address import parse_address
from septet.settings import Settings
from workers.connection.plugin import SeptetPlugin
from workers.worker import running_worker

settings = Settings.model_validate(json.loads(sys.argv[1]))

def ask(_):
    try:
        forge_for(parse_address(sys.argv[2]), settings).issue(1)
    except ForgeUnavailableError as error:
        return round(error.retry_after_seconds)
    return "read"

async def main():
    client = await Client.connect(sys.argv[3], plugins=[SeptetPlugin(settings.task_queue)])
    with ThreadPoolExecutor(6) as pool:
        async with running_worker(client, settings):
            print("told", json.dumps("ready"), flush=True)
            while count := int(await asyncio.to_thread(sys.stdin.readline) or 0):
                loop = asyncio.get_running_loop()
                told = await asyncio.gather(*(loop.run_in_executor(pool, ask, n) for n in range(count)))
                print("told", json.dumps(told), flush=True)

asyncio.run(main())
"""


class Host:
    """A worker with its own state directory, whose threads request from a forge on the test's command."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def started(cls, fake: ForgeFake, state: Path, address: str, queue: str) -> "Host":
        own = {"task_queue": queue, "sandbox": "none", "environ": dict(os.environ)}
        known = settings_for(fake, state) | own
        pipe = asyncio.subprocess.PIPE
        args = (HOST, json.dumps(known), f"{fake.url}/{fake.project}.git", address)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", *args, cwd=ROOT, stdin=pipe, stdout=pipe
        )
        host = cls(process)
        assert await host._told() == "ready"
        return host

    async def ask(self, askers: int) -> list[int | str]:
        """Let so many threads request at once; return for each the seconds of the pause, or `read`."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{askers}\n".encode())
        told: list[int | str] = await self._told()
        return told

    async def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert await asyncio.wait_for(self.process.wait(), 60) == 0

    async def _told(self) -> Any:
        """Return the next answer of the process; skip log lines."""
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            async for line in self.process.stdout:
                if line.startswith(b"told "):
                    return json.loads(line.removeprefix(b"told "))
        raise EOFError(f"the host has ended: {self.process.returncode}")


@pytest.mark.parametrize(
    "kind",
    [GitHubFake, *(pytest.param(kind, marks=pytest.mark.release) for kind in (GitLabFake, GiteaFake))],
    ids=lambda kind: kind.name,
)
async def test_of_twelve_askers_on_two_hosts_one_meets_the_limit(
    kind: type[ForgeFake], server: WorkflowEnvironment, client: Client, tmp_path: Path
) -> None:
    """After the first refusal no thread on either host sends a request, and each gets the seconds until the end."""
    queue = f"queue-{uuid.uuid4().hex}"
    address = server.client.service_client.config.target_host
    with serving_forge(kind()) as fake:
        fake.add_issue("Title")
        fake.faults.append(Fault(status=429, headers={"Retry-After": "600"}, text="slow down", times=100))
        hosts = [await Host.started(fake, tmp_path / name, address, queue) for name in ("host-1", "host-2")]
        first = await hosts[0].ask(1)
        others = await asyncio.gather(*(host.ask(6) for host in hosts))
        again = await hosts[1].ask(6)
        await asyncio.gather(*(host.end() for host in hosts))

    assert len(fake.asked) == 1
    told = [*first, *others[0], *others[1], *again]
    assert len(told) == 19
    assert all(isinstance(seconds, int) and 500 < seconds <= 600 for seconds in told)
    running = f'WorkflowType="Quota" AND TaskQueue="{queue}"'
    (pause,) = await wait_until(lambda: rows_of(client, running), lambda rows: len(rows) == 1)
    assert pause.startswith(f"{queue}-quota/forge-")
    assert fake.token not in pause


async def rows_of(client: Client, query: str) -> list[str]:
    return [row.id async for row in client.list_workflows(query)]


async def test_a_pause_ends_with_its_workflow(client: Client) -> None:
    """While its workflow runs each host knows the pause; after the workflow's end, requests to the forge pass again."""
    queue = f"queue-{uuid.uuid4().hex}"
    accounts, loop = FleetAccounts(client, queue), asyncio.get_running_loop()
    here, there = (ForgePauses(fleet=SharedForgePauses(accounts, loop)) for _ in range(2))
    await asyncio.to_thread(here.note, API, "key", 600.0)
    with pytest.raises(ForgeUnavailableError, match="takes no more requests for"):
        await asyncio.to_thread(there.check, API, "key", "an issue")
    await asyncio.to_thread(there.check, API, "another key", "an issue")
    (row,) = await wait_until(lambda: rows_of(client, f'TaskQueue="{queue}"'), lambda rows: len(rows) == 1)
    handle = client.get_workflow_handle(row)
    await handle.terminate()
    assert (await handle.describe()).status is WorkflowExecutionStatus.TERMINATED
    await asyncio.to_thread(ForgePauses(fleet=SharedForgePauses(accounts, loop)).check, API, "key", "an issue")


async def test_a_short_pause_and_one_that_is_known_are_not_told(client: Client) -> None:
    """Each signal costs Actions of Temporal: one signal is sent for a limit, not one for each request that meets it."""
    accounts = Silent()
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

    async def reserve(self, opening: AccountState, call: ReserveCall, *, opens: bool) -> Grant | None:
        raise NotImplementedError

    async def is_open(self, scope: str) -> bool:
        raise NotImplementedError

    async def settle(self, scope: str, call: SettleCall) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("accounts", [Silent(hangs=True), Silent(refuses=True)], ids=["hangs", "refuses"])
async def test_a_server_that_does_not_answer_holds_up_no_request_to_a_forge(accounts: Silent) -> None:
    """The pause is queried once, within seconds, and then not for a while; requests to the forge pass anyway."""
    pauses = ForgePauses(fleet=SharedForgePauses(accounts, asyncio.get_running_loop()))
    began = time.monotonic()
    for _ in range(5):
        await asyncio.to_thread(pauses.check, API, "key", "an issue")
    assert accounts.asked == 1
    assert time.monotonic() - began < 60


async def test_the_loop_of_a_worker_never_waits_for_itself() -> None:
    """A request to a forge on the worker's own loop does not query the server."""
    accounts = Silent()
    ForgePauses(fleet=SharedForgePauses(accounts, asyncio.get_running_loop())).check(API, "key", "an issue")
    assert accounts.asked == 0


async def test_a_worker_that_has_ended_shares_no_more() -> None:
    """Threads that still run after their worker's end query no server."""
    accounts = Silent()
    async with sharing_forge_pauses(accounts):
        shared = PAUSES.fleet
        assert shared is not None
    assert PAUSES.fleet is None
    loop = asyncio.new_event_loop()
    loop.close()
    ended = SharedForgePauses(accounts, loop)
    thread = threading.Thread(target=lambda: ended.until("budget"))
    thread.start()
    await asyncio.to_thread(thread.join)
    assert accounts.asked == 0
