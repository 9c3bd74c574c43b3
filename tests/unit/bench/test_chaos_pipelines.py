"""The chaos program's checks of a pipeline: its documents during the trial, and turns that were paid twice."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.chaos.journal import Life
from bench.chaos.kills import Kill
from bench.chaos.payments import paid_twice
from bench.chaos.pipelines.watch import Watch
from bench.chaos.plan import Kind, Plan
from bench.chaos.trial import Seen

NAME = "execution-results.json"


def entry(issue: str, **facts: Any) -> dict[str, Any]:
    return {"issue_id": issue, "status": "completed", "solution_id": f"SOL-{issue}", **facts}


def put(folder: Path, *entries: dict[str, Any]) -> None:
    (folder / NAME).write_text(json.dumps({"results": entries}), encoding="utf-8")


@pytest.mark.parametrize(
    ("after", "faults"),
    [
        ([entry("0"), entry("1"), entry("2")], 0),
        ([entry("1")], 1),
        ([entry("0"), entry("1", status="failed")], 1),
        ([entry("0"), entry("1"), entry("1")], 1),
    ],
)
def test_an_entry_that_goes_or_changes_or_comes_twice_is_a_fault(
    tmp_path: Path, after: list[dict[str, Any]], faults: int
) -> None:
    """An entry that disappears, changes or repeats is a fault; a missing document and a further entry are none."""
    watch = Watch(tmp_path)
    watch.look()
    put(tmp_path, entry("0"), entry("1"))
    watch.look()
    put(tmp_path, *after)
    watch.look()
    assert len(watch.faults) == faults


def test_a_document_that_is_torn_or_gone_is_a_fault(tmp_path: Path) -> None:
    """A document that is incomplete or gone is a fault."""
    watch = Watch(tmp_path)
    put(tmp_path, entry("0"))
    watch.look()
    (tmp_path / NAME).write_text('{"results": [{"iss', encoding="utf-8")
    watch.look()
    (tmp_path / NAME).unlink()
    watch.look()
    assert ["whole" in fault for fault in watch.faults] == [True, False]
    assert "gone" in watch.faults[1]


def turn(name: str, began: float, last: float, run: str = "a", *, ended: bool = True) -> Life:
    return Life("pl-1-i000", name, "implement_plan", run=run, began=began, last=last, ended=ended)


def seen(kills: list[Kill], *lives: Life) -> Seen:
    return Seen(Plan(), ("pl-1-i000",), 60.0, list(lives), kills, [], [], frozenset(), {}, [])


@pytest.mark.parametrize(
    ("kind", "at", "target", "ended", "count"),
    [
        ("agent", 4.0, "one", False, 0),
        ("supervisor", 5.2, "one", True, 0),  # the result was not saved yet
        ("supervisor", 4.0, "earlier", False, 0),  # the kill saw an earlier turn of the same process
        ("supervisor", 0.5, "earlier", False, 1),  # an earlier turn was killed
        ("supervisor", 8.0, "one", True, 1),  # the result was saved long before
        ("worker", 4.0, "", False, 1),
        ("host", 4.0, "", False, 0),
        ("host", 7.0, "", True, 0),  # the work was not on the checkpoint remote yet
        ("host", 10.5, "", True, 1),
    ],
)
def test_a_turn_that_is_taken_again_was_killed_before_or_is_paid_twice(
    kind: Kind, at: float, target: str, ended: bool, count: int
) -> None:
    """A repeated turn is excused only by a kill of its own processes or host before its result was saved."""
    earlier = Life("pl-1-i000", "earlier", "generate_branch", run="a", began=0, last=1, ended=True)
    other = Life("pl-1-i001", "other", "build_plan", run="b", began=0, last=9, ended=True)
    first, again = turn("one", 2.0, 5.0, ended=ended), turn("two", 10.0, 12.0, run="c")
    blow = Kill(kind, at, frozenset({target}), target)
    assert len(list(paid_twice(seen([blow], earlier, other, first, again)))) == count
