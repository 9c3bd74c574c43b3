"""One command for many work orders: it lists the chosen work orders first, and acts after a yes."""

from pathlib import Path

import pytest
from fakes.repositories import Origin
from fakes.septet_command import Septet
from fakes.terminal import terminal

pytestmark = [pytest.mark.recovery, pytest.mark.timeout(120)]


def test_plans_are_approved_together_after_a_look(served: Septet, origin: Origin) -> None:
    """Without a terminal the command changes nothing and names the option; at a terminal it asks for a yes."""
    orders = [served.start(origin, f"wo-plan-{number}", "--approve-plan") for number in (1, 2)]
    for order in orders:
        served.wait_for_order(order, "waiting")
    look = served("approve", "--repo", origin.bare)
    assert look.code == 0
    assert all(order in look.out for order in orders)
    assert "Nothing was done. To approve these 2, add --yes." in look.out
    with terminal(served, "approve", "--repo", str(origin.bare)) as person:
        person.until("Approve these 2? [y/N]")
        person.type("n")
        code, painted = person.end()
    assert (code, "Nothing was done." in painted) == (0, True)
    for order in orders:
        served.wait_for_order(order, "waiting")
    with terminal(served, "approve", "--repo", str(origin.bare)) as person:
        person.until("Approve these 2? [y/N]")
        person.type("y")
        code, _ = person.end()
    assert code == 0
    assert [served.closed(order)["status"] for order in orders] == ["completed"] * 2
    left = served("approve", "--repo", origin.bare, "--yes", "--json").json
    assert (left["done"], left["tasks"]) == (False, [])
    closed = served("cancel", *orders)
    assert (closed.code, "--yes" in closed.out) == (5, False)
    assert all(f"{order} is completed and cannot be cancelled." in closed.out + closed.err for order in orders)


def test_a_look_shows_those_that_are_meant(served: Septet, origin: Origin, tmp_path: Path) -> None:
    """Each verb lists its work orders: failed, open or with a waiting plan; of a repository, an agent, an error."""
    runs = served.start(origin, "wo-many-runs", classify_issue={"wait_for": str(tmp_path / "never")})
    fails = served.start(origin, "wo-many-fails", implement_plan={"refuse": "no"})
    waits = served.start(origin, "wo-many-waits", "--approve-plan")
    served.wait_for_order(waits, "waiting")
    assert served.closed(fails)["status"] == "failed"

    def shown(*words: str) -> list[str]:
        look = served(*words, "--json").json
        assert (look["ok"], look["done"]) == (True, False)
        return sorted(task["id"] for task in look["tasks"])

    here = ("--repo", str(origin.bare))
    for verb, meant in {"retry": [fails], "cancel": sorted([runs, waits]), "approve": [waits]}.items():
        assert set(meant) <= set(shown(verb, "--all"))
        assert shown(verb, *here) == shown(verb, *here, "--agent", "scripted") == meant
        assert shown(verb, *here, "--agent", "codex") == []
    assert shown("retry", *here, "--failed", "StepFailed") == [fails]
    assert shown("retry", *here, "--failed", "DiskFull") == []
    assert served("cancel", *here, "--yes").code == 0
    assert [served.closed(order)["status"] for order in (runs, waits)] == ["cancelled"] * 2


def test_one_that_refuses_holds_no_other_up(served: Septet, origin: Origin, tmp_path: Path) -> None:
    """One object lists the done work orders and the errors; the exit code is of the error."""
    slow = {"wait_for": str(tmp_path / "never")}
    orders = [served.start(origin, f"wo-many-{number}", classify_issue=slow) for number in (1, 2)]
    ended = served("cancel", *orders, "wo-there-is-none", "--yes", "--json")
    answer = ended.json
    assert (ended.code, answer["ok"], answer["done"]) == (3, False, True)
    assert sorted(task["id"] for task in answer["tasks"]) == orders
    assert [(each["id"], each["type"]) for each in answer["errors"]] == [("wo-there-is-none", "NotFound")]
    assert [served.closed(order)["status"] for order in orders] == ["cancelled"] * 2
