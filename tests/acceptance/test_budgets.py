"""A work order with a budget on a whole installation: it pauses, names the command, and continues, on each face."""

import re

import pytest
from fakes.repositories import Origin
from fakes.septet_command import Septet

pytestmark = pytest.mark.faces

A_CENT_A_MESSAGE = {"cost_usd": 0.01, "tokens": {"input_tokens": 9, "output_tokens": 1}}


def test_a_work_order_pauses_at_its_budget_and_continues_when_it_is_raised(served: Septet, origin: Origin) -> None:
    """An agent stops within its turn, its session continues after the raise, and the account has all costs once."""
    order = served.scenario("wo-budget", A_CENT_A_MESSAGE)
    started = served(
        "run", "--repo", origin.bare, "--title", "Say goodbye too", "--id", order, "--budget", "0.03usd", "--json"
    )
    assert started.code == 0, started
    answer = served.wait_for_detail(order, lambda detail: detail["task"]["budget"])
    assert answer["task"]["status"] == "waiting"
    assert f"septet budget raise order/{order} 0.03usd" in answer["waiting_for"]
    assert re.search(r"… +\w+ +waiting +[1-9]\d+ *$", served("show", order).out, re.MULTILINE)

    shown = served("budget", "show", order, "--json").json["budget"]
    assert (shown["limit"], shown["waiting"]) == ("0.03usd", [order])
    assert 0.03 <= shown["spent"]["usd"] <= 0.04
    with served.api as api:
        assert api.get("/budgets/show", params={"budget": order}).json()["budget"] == shown
        assert shown in api.get("/budgets").json()["budgets"]
        wrong = api.post("/budgets/raise", json={"budget": order, "limit": "much"})
        assert (wrong.status_code, "such as 5usd" in wrong.text) == (422, True)
    other = served("budget", "raise", order, "2Mtok")
    assert (other.code, "is 0.03usd, and cannot be raised by 2Mtok" in other.err) == (5, True), other
    raised = served("budget", "raise", order, "5usd", "--expected", "0.03usd", "--json").json
    assert (raised["budget"]["limit"], raised["is_raised"]) == ("5.03usd", True)
    assert raised["budget"]["remedy"] == ""  # waiting work orders reserve again by themselves
    again = served("budget", "raise", order, "5usd", "--expected", "0.03usd")
    assert (again.code, "Nothing was added: the limit is no longer 0.03usd." in again.out) == (0, True), again
    with served.api as api:
        body = {"budget": order, "limit": "5usd", "expected": "0.03 USD"}
        again = api.post("/budgets/raise", json=body).json()
    assert (again["budget"]["limit"], again["is_raised"]) == ("5.03usd", False)

    task = served.wait_for_order(order, "completed")
    shown = served("budget", "show", order, "--json").json["budget"]
    assert shown["total"]["usd"] == pytest.approx(task["usage"]["cost_usd"])
    assert shown["total"]["tokens"] == sum(
        task["usage"][f"{kind}_tokens"] for kind in ("input", "output", "cache_read", "cache_write")
    )
    assert len(served("show", order, "--json").json["runs"]) == 8
    assert not [*(served.state / "held").iterdir()]
