"""A work order's account ends with it, and loses nothing: a use that is reported later or twice counts once."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fakes.killed_machine import running_machine
from fakes.repositories import Origin
from fakes.septet_command import Septet
from fakes.waiting import until, until_temporal
from temporalio.client import Client

from septet.contracts.amounts import Spending
from septet.contracts.budget import SettleCall
from workers.connection.plugin import SeptetPlugin
from workers.watching.accounts import FleetAccounts

pytestmark = [pytest.mark.recovery, pytest.mark.timeout(300), pytest.mark.law]

ORDER, SCOPE, ACCOUNT = "wo-1", "order/wo-1", "septet-budget/order/wo-1"
LOST = SettleCall(key="lost", used=Spending(usd=5.0, tokens=7, seconds=60.0))
SLOW = SettleCall(key="slow", used=Spending(usd=0.25, tokens=7, seconds=60.0))
LOOKED_AT_SECONDS = 2.0
AT_ONCE = 5
OPENS_BY_AN_OLD_LOOK = """
import asyncio, os, sys
from temporalio.client import Client
from activities.board.account_archive import find_account, open_account
from septet.contracts.budget import SettleCall
from workers.connection.plugin import SeptetPlugin

async def main(address, scope, word):
    client = await Client.connect(address, plugins=[SeptetPlugin()])
    found = await find_account(client, "septet", scope)
    print("looked", flush=True)
    sys.stdin.readline()
    await open_account(client, "septet", found.ended_with, found, SettleCall.model_validate_json(word))
    os._exit(0)  # an interpreter that is taken apart under the SDK's threads is aborted now and then

asyncio.run(main(*sys.argv[1:]))
"""


def test_what_is_told_after_the_end_of_an_account_is_counted_once_and_a_retry_counts_on(
    septet: Septet, origin: Origin
) -> None:
    """The machine is killed before, while and after a lost host reports its agent's use, repeatedly.

    Another host is stopped between its look at the account and its report, and continues long after a retry has
    used the account.
    """

    def account() -> dict[str, Any]:
        shown: dict[str, Any] = septet("budget", "show", ORDER, "--json").json["budget"]
        return shown

    with running_machine(septet) as machine:
        holds = [
            {"key": each.key, "order_id": ORDER, "step": "build_plan", "ends_at": 1.0} for each in (LOST, SLOW)
        ]
        opening = {
            "scope": SCOPE, "limit": {"usd": 5.0}, "holds": holds, "looked_at_seconds": LOOKED_AT_SECONDS,
        }  # fmt: skip
        started = septet.temporal(
            "workflow", "start", "--task-queue", "septet", "--type", "Account", "--workflow-id", ACCOUNT,
            "--input", json.dumps(opening),
        )  # fmt: skip
        assert started.code == 0, started
        septet.scenario(ORDER, {"cost_usd": 0.01, "tokens": {"input_tokens": 9, "output_tokens": 1}})
        septet.start(origin, ORDER)
        used = septet.closed(ORDER)["usage"]["cost_usd"]
        first_run = until_ended(septet)
        ended = account()
        assert ended["total"]["usd"] == pytest.approx(used)
        assert ORDER in json.dumps(septet("budget", "list", "--json").json["budgets"])

        machine.kill()
        machine.start()
        asyncio.run(tell(septet, LOST))
        machine.kill()
        machine.start()
        asyncio.run(tell(septet, LOST))
        second_run = until_ended(septet, besides=first_run)
        late = account()
        assert late["total"]["usd"] == pytest.approx(used + LOST.used.usd)
        assert (late["total"]["turns"], late["total"]["tokens"] - ended["total"]["tokens"]) == (
            ended["total"]["turns"] + 1,
            LOST.used.tokens,
        )
        asyncio.run(tell(septet, LOST))
        assert until_ended(septet) == second_run  # nothing was to be counted, so no account was opened

        with stopped_after_its_look(septet) as slow_host:
            assert septet("retry", ORDER, "--from", "create_commit", "--json").code == 0
            until(lambda: septet("show", ORDER, "--json").json["task"]["status"] == "waiting")
            asked_run = until_ended(septet, besides=second_run)
            assert (account()["total"], account()["waiting"]) == (late["total"], [ORDER])
            assert septet("budget", "raise", ORDER, "1usd", "--json").code == 0
            until(lambda: account()["total"]["turns"] > late["total"]["turns"])
            septet.closed(ORDER)
            last_run = until_ended(septet, besides=asked_run)
            again = account()
            one_more = ended["by_step"]["create_commit"]["usd"] + ended["by_step"]["create_pull_request"]["usd"]
            assert again["total"]["usd"] == pytest.approx(used + LOST.used.usd + one_more)
            assert again["limit"] == "6usd"

            slow_host.send_signal(signal.SIGCONT)
            slow_host.communicate("\n", timeout=60)
            assert slow_host.returncode == 0
        slow_run = until_ended(septet, besides=last_run)
        asyncio.run(tell(septet, SLOW))
        assert until_ended(septet) == slow_run
        slow = account()
    assert slow["total"]["usd"] == pytest.approx(again["total"]["usd"] + SLOW.used.usd)
    assert (slow["total"]["turns"], slow["limit"]) == (again["total"]["turns"] + 1, "6usd")


@contextmanager
def stopped_after_its_look(septet: Septet) -> Iterator["subprocess.Popen[str]"]:
    """Let a process look the account up, and stop it before it opens the account to report a use."""
    command = [sys.executable, "-c", OPENS_BY_AN_OLD_LOOK, septet.address, SCOPE, SLOW.model_dump_json()]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "looked\n"
            process.send_signal(signal.SIGSTOP)
            yield process
        finally:
            process.kill()


def until_ended(septet: Septet, besides: str = "") -> str:
    """Wait until a run of the account other than `besides` has ended, and return that run."""

    def ended() -> str | None:
        told = septet.temporal("workflow", "describe", "--workflow-id", ACCOUNT, "--output", "json")
        info = json.loads(told.out)["workflowExecutionInfo"]
        run: str = info["execution"]["runId"]
        return run if info["status"] == "WORKFLOW_EXECUTION_STATUS_COMPLETED" and run != besides else None

    return until_temporal(ended)


async def tell(septet: Septet, word: SettleCall) -> None:
    """Report a use from several workers at once, each of which takes itself for the only one."""
    fleets = [await accounts_of(septet) for _ in range(AT_ONCE)]
    await asyncio.gather(*(fleet.settle(SCOPE, word) for fleet in fleets))


async def accounts_of(septet: Septet) -> FleetAccounts:
    """Return the accounts through a separate client, like another worker."""
    return FleetAccounts(await Client.connect(septet.address, plugins=[SeptetPlugin()]), "septet")
