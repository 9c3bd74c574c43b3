"""The chaos program's checks of a pipeline: its documents during the trial, and turns that were paid twice."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bench.chaos.journal import Life
from bench.chaos.kills import Kill
from bench.chaos.payments import paid_twice
from bench.chaos.pipelines.laws import missing
from bench.chaos.pipelines.watch import Watch
from bench.chaos.plan import Kind, Plan
from bench.chaos.results import has_result
from bench.chaos.trial import Seen
from bench.repository import make_repository
from septet.system import processes

NAME = "execution-results.json"


def entry(issue: str, **facts: Any) -> dict[str, Any]:
    """Return an entry of a document."""
    return {"issue_id": issue, "status": "completed", "solution_id": f"SOL-{issue}", **facts}


def put(folder: Path, *entries: dict[str, Any]) -> None:
    """Write the document."""
    (folder / NAME).write_text(json.dumps({"results": entries}), encoding="utf-8")


def test_documents_that_only_grow_are_as_they_should_be(tmp_path: Path) -> None:
    """A missing document and an additional entry are no faults."""
    watch = Watch(tmp_path)
    watch.look()
    for count in (1, 2):
        put(tmp_path, *(entry(str(number)) for number in range(count)))
        watch.look()
    assert (watch.faults, watch.looks) == ([], 3)


@pytest.mark.parametrize(
    "after",
    [
        [entry("1")],
        [entry("0"), entry("1", commit_hash="other")],
        [entry("0"), entry("1", status="failed")],
        [entry("0"), entry("1"), entry("1")],
    ],
)
def test_an_entry_that_goes_or_changes_or_comes_twice_is_a_fault(
    tmp_path: Path, after: list[dict[str, Any]]
) -> None:
    """An entry that disappears, changes or repeats is a fault."""
    watch = Watch(tmp_path)
    put(tmp_path, entry("0"), entry("1"))
    watch.look()
    put(tmp_path, *after)
    watch.look()
    assert len(watch.faults) == 1


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
    """Return a turn of one step."""
    return Life("pl-1-i000", name, "implement_plan", run=run, began=began, last=last, ended=ended)


def seen(kills: list[Kill], *lives: Life) -> Seen:
    """Return a trial with these turns."""
    return Seen(Plan(), ("pl-1-i000",), 60.0, list(lives), kills, [], [], frozenset(), {}, [])


@pytest.mark.parametrize(
    ("kind", "at", "target", "ended", "count"),
    [
        ("agent", 4.0, "one", False, 0),
        ("supervisor", 5.2, "one", True, 0),  # the result was not saved yet
        ("supervisor", 4.0, "earlier", False, 0),  # the kill saw an earlier turn of the same process
        ("supervisor", 1.9, "earlier", False, 0),  # the prompt was sent, and the agent reported it as it died
        ("supervisor", 0.5, "earlier", False, 1),  # an earlier turn was killed
        ("supervisor", 8.0, "one", True, 1),  # the result was saved long before
        ("agent", 4.0, "other", False, 1),
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


@pytest.mark.parametrize(("cut_short", "count"), [(True, 0), (False, 1)])
def test_a_blow_takes_a_turn_whose_result_was_not_on_disk_however_late_it_is(cut_short: bool, count: int) -> None:
    """A late kill is an excuse if the supervisor had not yet written the agent's output."""
    blow = Kill("supervisor", 8.0, frozenset({"one"}), "one", cut_short)
    assert len(list(paid_twice(seen([blow], turn("one", 2.0, 5.0), turn("two", 10.0, 12.0, run="c"))))) == count


@pytest.mark.parametrize(
    ("printed", "has"),
    [
        ('{"type": "result", "result": "done"}\n', True),
        ('{"type":"assistant"}\nno JSON\n[1]\n{"type":"result"}\n', True),
        ('{"type":"assistant","text":"result"}\n{"type":"res', False),
        (None, False),
    ],
)
def test_a_turn_has_its_result_when_that_is_in_its_own_run(tmp_path: Path, printed: str | None, has: bool) -> None:
    """A turn's result is in its own run, not in the run before or after it."""
    life = Life("pl-1-i000", "one", "implement_plan", tree="pl-1-lane", began=20.0)
    result = '{"type":"result"}\n'
    for name, ordered, output in (("1", 10.0, result), ("2", 19.0, printed), ("3", 30.0, result)):
        run = tmp_path / "pl-1-lane" / name
        run.mkdir(parents=True)
        (run / "run.json").touch()
        os.utime(run / "run.json", (ordered, ordered))
        if output is not None:
            (run / "stdout.jsonl").write_text(output, encoding="utf-8")
    assert has_result(tmp_path, life) is has


@pytest.fixture
def over(tmp_path: Path) -> Path:
    """Return the folder of a completed pipeline of one issue, beside the origin with its branch."""
    origin = make_repository(tmp_path / "origin.git", 1, 7, os.environ)
    git = ["git", "--git-dir", str(origin)]
    processes.run([*git, "branch", "septet/chore-pl-1-i000-chaos", "main"], env=os.environ)
    commit = processes.run([*git, "rev-parse", "main"], env=os.environ).stdout.decode().strip()
    said = {
        "planning-results.json": {"results": [entry("i000", solution={"tasks": [{"id": "T1"}]})]},
        NAME: {"results": [entry("i000", commit_hash=commit, files_modified=["part.txt"])]},
        "report.json": {
            "counts": {"completed": 1},
            "pipeline": {
                "status": "completed",
                "issues": [{"issue_id": "i000", "commit_hash": commit, "pr_url": "pull/1"}],
            },
        },
    }
    for name, content in said.items():
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "report.md").write_text("# Pipeline\n\n## i000: Work\n", encoding="utf-8")
    return tmp_path


def test_documents_and_a_report_that_say_what_the_origin_has_are_complete(over: Path) -> None:
    """Plan, files, commit, pull request and text of each issue are present."""
    assert list(missing(over, over / "origin.git", os.environ, ["pl-1-i000"])) == []


@pytest.mark.parametrize(
    ("document", "old", "new"),
    [
        ("planning-results.json", '"T1"', ""),
        ("planning-results.json", '[{"id": "T1"}]', "[]"),
        (NAME, '"part.txt"', ""),
        (NAME, '"commit_hash": "', '"commit_hash": "0'),
        ("report.json", "pull/1", ""),
        ("report.json", '"completed": 1', '"completed": 0'),
        ("report.md", "## i000:", "##"),
    ],
)
def test_what_they_leave_out_or_say_otherwise_is_told(over: Path, document: str, old: str, new: str) -> None:
    """Each fact that a document leaves out or states wrongly is one finding."""
    text = (over / document).read_text(encoding="utf-8")
    (over / document).write_text(text.replace(old, new), encoding="utf-8")
    assert len(list(missing(over, over / "origin.git", os.environ, ["pl-1-i000"]))) == 1
