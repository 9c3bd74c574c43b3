"""Costs and budgets of work orders and the estimate of the next, on a whole installation and on each face alike."""

import re
from html import unescape
from typing import Any

import pytest
from fakes.repositories import Origin
from fakes.septet_command import Septet

from septet.budgets.turn_notes import NoteFiles
from septet.contracts.amounts import Spending
from septet.contracts.costs import CostNote
from septet.costs.estimate import ALL_STEPS

pytestmark = pytest.mark.faces

COMPLETED = 12
A_CENT = {"cost_usd": 0.01, "tokens": {"input_tokens": 9, "output_tokens": 1}}


def costs_of(served: Septet, project: str, by: str = "project") -> dict[str, Any]:
    ended = served("costs", "--by", by, "--project", project, "--json")
    assert ended.code == 0, ended
    answer: dict[str, Any] = ended.json
    return answer


def note_completed(served: Septet, project: str, count: int, *, model: str = "", usd_first: float = 1.0) -> None:
    """Note work orders as a host's attempts do: each costs 10 cents more than the one before."""
    notes = NoteFiles(served.state / "costs")
    for number in range(count):
        usd = (usd_first + number / 10) / len(ALL_STEPS)
        for step in ALL_STEPS:
            notes.note(
                CostNote(
                    project=project,
                    order_id=f"wo-{model}{number}",
                    key=f"{project[-4:]}{model}{number:04}{step}",
                    step=step,
                    agent="scripted",
                    model=model,
                    asked_model=model,
                    use=Spending(usd=usd, tokens=round(usd * 1e6), seconds=usd * 600),
                    week="2026-W40",
                    completes=step == ALL_STEPS[-1],
                    plan_bytes=1000 + number,
                )
            )


def test_what_was_used_is_counted_once(served: Septet, origin: Origin) -> None:
    """A project's costs equal its work order's steps, by step and agent, as soon as the work order is completed."""
    order = served.scenario("wo-costs", A_CENT)
    done = served(
        "run",
        "--repo",
        origin.bare,
        "--title",
        "Count",
        "--id",
        order,
        "--project",
        "o/counted",
        "--wait",
        "--json",
    )
    task = done.json["task"]
    assert done.json["estimate"]["text"].startswith("Estimate: ")
    tokens = sum(task["usage"][f"{kind}_tokens"] for kind in ("input", "output", "cache_read", "cache_write"))
    served.wait_for("/costs", lambda costs: costs["total"]["tokens"] == tokens, project="o/counted")
    found = costs_of(served, "o/counted")
    assert found["total"]["tokens"] == tokens
    assert found["total"]["usd"] == pytest.approx(task["usage"]["cost_usd"])
    assert found["total"]["turns"] == len(ALL_STEPS)
    assert [group["name"] for group in costs_of(served, "o/counted", "agent")["costs"]] == ["scripted"]
    assert {group["name"] for group in costs_of(served, "o/counted", "step")["costs"]} == set(ALL_STEPS)
    shown = served("costs").out
    assert "o/counted" in shown
    assert "Tokens and dollars of the agent `scripted` are made up." in shown
    assert [*(served.state / "costs").glob("*.*")] == []
    recent = served("costs", "--project", "o/counted", "--since", "4w", "--json").json
    assert (recent["total"], len(recent["since"])) == (found["total"], len("2026-W40"))
    with served.api as api:
        assert api.get("/costs", params={"project": "o/counted", "since": "4w"}).json() == recent
    wrong = served("costs", "--since", "yesterday")
    assert (wrong.code, "Write it as 2026-W40" in wrong.err) == (2, True)


def test_every_face_says_what_it_will_cost(served: Septet, origin: Origin) -> None:
    """A start, a dry run and the plan's approval show the same estimate, from work orders with the same model."""
    note_completed(served, "o/known", COMPLETED, model="small")
    note_completed(served, "o/known", COMPLETED, model="large", usd_first=50.0)
    turns = 2 * COMPLETED * len(ALL_STEPS)
    served.wait_for("/costs", lambda costs: costs["total"]["turns"] == turns, project="o/known")
    named = ("--title", "Guess", "--project", "o/known", "--model", "small")
    asked = ("run", "--repo", origin.bare, *named, "--approve-plan")
    dry = served(*asked, "--dry-run", "--json").json["estimate"]
    assert (dry["is_known"], dry["orders"], dry["all_projects"]) == (True, COMPLETED, False)
    assert 1.0 <= dry["remaining"]["usd"]["low"] < dry["remaining"]["usd"]["middle"] < 2.1
    assert set(dry["steps"]) == set(ALL_STEPS)
    assert dry["text"] in served(*asked, "--dry-run").out
    order = served.scenario("wo-guess", {})
    started = served(*asked, "--id", order)
    assert dry["text"] in started.out
    rest = served.wait_for_detail(order, lambda detail: detail["estimate"])["estimate"]
    assert rest["text"].startswith("Estimate to finish: ")
    assert rest["orders"] == COMPLETED
    assert rest["remaining"]["usd"]["middle"] == pytest.approx(dry["remaining"]["usd"]["middle"] * 4 / 7)
    assert rest["text"].removeprefix("Estimate to finish: ") in served("show", order).out
    with served.api as api:
        assert api.get(f"/agent-work-orders/{order}/detail").json()["estimate"] == rest
        assert api.get("/costs", params={"project": "o/known"}).json() == costs_of(served, "o/known")
        new = {"repository_url": str(origin.bare), "title": "Again", "project": "o/known", "stage": "collected"}
        created = api.post("/agent-work-orders", json=new | {"model": "small"})
        assert (created.status_code, created.json().get("estimate")) == (201, dry), created.text
    assert served("cancel", order).code == 0


def test_a_work_order_pauses_at_its_budget_and_continues_when_it_is_raised(served: Septet, origin: Origin) -> None:
    """An agent stops within its turn, its session continues after the raise, and the account has all costs once."""
    order = served.scenario("wo-budget", A_CENT)
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
        params = {"token": served.page.rpartition("token=")[2]}
        page = api.get(f"/work-orders/{order}", params=params, follow_redirects=True).text
        assert '"expected": "0.03usd"' in unescape(page), "a click that is repeated adds nothing"
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
