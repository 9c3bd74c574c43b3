"""Work orders share a budget while their `septet up` is killed again and again: each turn counts once."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fakes.killed_machine import running_machine
from fakes.repositories import Origin
from fakes.septet_command import Septet
from fakes.waiting import until

from septet.budgets.held_turns import HeldTurns

pytestmark = [pytest.mark.recovery, pytest.mark.release, pytest.mark.timeout(900), pytest.mark.law]

ORDERS = ("wo-1", "wo-2", "wo-3")
BUDGET = "project/shared"
LIMIT, MESSAGE = 0.12, 0.01
DEAREST_TURN = 5 * MESSAGE
LONG_SECONDS = 400.0
"""The server gives out a task again two minutes after it gave the task to a dying worker."""
COUNTED = ("input", "output", "cache_read", "cache_write")


def test_work_orders_that_share_a_budget_are_counted_once_each_however_often_their_machine_is_killed(
    septet: Septet, origin: Origin
) -> None:
    """After kills during a turn, after a count and while all wait, the account is exact, and a raise lets all continue."""

    def account() -> dict[str, Any]:
        shown: dict[str, Any] = septet("budget", "show", BUDGET, "--json").json["budget"]
        return shown

    with running_machine(septet) as machine:
        assert septet("budget", "set", BUDGET, f"{LIMIT}usd").code == 0
        for order in ORDERS:
            septet.scenario(order, {"cost_usd": MESSAGE, "tokens": {"input_tokens": 9, "output_tokens": 1}})
            ran = septet(
                "run", "--repo", origin.bare, "--title", "Go on", "--id", order, "--project", "shared", "--json"
            )
            assert ran.code == 0, ran
        septet.until_works("wo-1", "1-classify_issue-1")
        machine.kill()
        machine.start()
        until(lambda: account()["total"]["usd"] > 0, LONG_SECONDS)
        machine.kill()
        machine.start()
        until(lambda: sorted(account()["waiting"]) == list(ORDERS), LONG_SECONDS)
        machine.kill()
        machine.start()
        spent = account()
        assert LIMIT <= spent["total"]["usd"] <= LIMIT + DEAREST_TURN
        assert septet("budget", "raise", BUDGET, "5usd").code == 0
        tasks = [until(partial(completed, septet, order), LONG_SECONDS) for order in ORDERS]
        counted = account()
    assert counted["total"]["usd"] == pytest.approx(sum(task["usage"]["cost_usd"] for task in tasks))
    assert counted["total"]["tokens"] == sum(task["usage"][f"{kind}_tokens"] for task in tasks for kind in COUNTED)
    assert counted["waiting"] == []
    assert held(septet.state) == []


def completed(septet: Septet, order: str) -> dict[str, Any] | None:
    """Return a work order once it is completed."""
    task: dict[str, Any] = septet("show", order, "--json").json["task"]
    assert task["status"] not in {"failed", "cancelled"}, task["error"]
    return task if task["status"] == "completed" else None


def held(state: Path) -> list[str]:
    """Return the places of turns that are not settled yet; a kill may also leave a torn note."""
    return [*HeldTurns(state / "held").places()]
