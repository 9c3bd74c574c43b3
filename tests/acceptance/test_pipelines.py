import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.repositories import Origin, make_origin
from fakes.septet_command import Septet

pytestmark = pytest.mark.faces

Answer = dict[str, Any]
ISSUES: list[Answer] = [
    {"id": "a", "title": "Say goodbye too", "body": "The app greets only.", "depends_on": ["b"]},
    {"id": "b", "title": "Greet twice", "body": "Once is not enough."},
]


def listed(folder: Path, *issues: Answer) -> Path:
    file = folder / "issues.json"
    file.write_text(json.dumps(issues), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def pipelined(served: Septet) -> Answer:
    """A completed pipeline, which tests read and do not change."""
    origin = make_origin(served.root / "pipelined", "app.git")
    origin.push({"app.py": "print('hello')\n", "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n"})
    file = listed(served.root / "pipelined", *ISSUES)
    answer = served("pipeline", "--repo", origin.bare, "--file", file, "--id", "pl-done", "--wait", "--json")
    assert answer.code == 0, answer
    view: Answer = answer.json["pipeline"]
    return view


@pytest.fixture
def held(served: Septet, origin: Origin, tmp_path: Path) -> Iterator[str]:
    """A pipeline whose planner waits within its first plan; it is cancelled after the test."""
    name = f"pl-{tmp_path.name.replace('_', '-')[-24:]}"
    served.scenario(f"{name}-planner", {"steps": {"classify_issue": {"wait_for": str(tmp_path / "gate")}}})
    assert served("pipeline", "--repo", origin.bare, "--file", listed(tmp_path, *ISSUES), "--id", name).code == 0
    served.wait_for_pipeline(name, lambda view: statuses_of(view)[:1] == ["planning"])
    yield name
    (tmp_path / "gate").touch()
    served("pipeline", "cancel", name, "--json")


def statuses_of(view: Answer) -> list[str]:
    return [issue["status"] for issue in view["issues"]]


def test_wait_gives_every_issue_its_pull_request_in_the_order_of_what_depends(pipelined: Answer) -> None:
    """`--wait --json` returns the completed pipeline, and exits with 0."""
    assert (pipelined["id"], pipelined["status"]) == ("pl-done", "completed")
    assert [(issue["issue_id"], issue["status"]) for issue in pipelined["issues"]] == [
        ("b", "completed"), ("a", "completed"),
    ]  # fmt: skip
    assert all(issue["commit_hash"] and issue["pr_url"] for issue in pipelined["issues"])


def test_a_pipeline_is_listed_and_shown(served: Septet, pipelined: Answer) -> None:
    """`list` has its counts, `show` equals the result of `--wait`; as text both show a table, and the commits."""
    rows = {row["id"]: row for row in served("pipeline", "list", "--json").json["pipelines"]}
    assert (rows["pl-done"]["status"], rows["pl-done"]["counts"]) == ("completed", {"completed": 2})
    shown_json = {"ok": True, "pipeline": pipelined, "estimate": None}
    assert served("pipeline", "show", "pl-done", "--json").json == shown_json
    shown = served("pipeline", "show", "pl-done")
    assert shown.code == 0
    assert pipelined["issues"][0]["commit_hash"][:12] in shown.out
    assert re.search(r"^pl-done\tcompleted\t[^\t]+\t2 completed\t", served("pipeline", "list").out, re.MULTILINE)


def test_results_are_the_documents_of_its_host(served: Septet, pipelined: Answer) -> None:
    """`results` returns the documents in the pipeline's folder; `report` covers each issue."""
    told = served("pipeline", "results", "pl-done", "--json").json
    folder = served.state / "pipelines" / "pl-done"
    for name in ("planning", "execution"):
        assert told[name] == json.loads((folder / f"{name}-results.json").read_bytes())
    assert [entry["commit_hash"] for entry in told["execution"]["results"]] == [
        issue["commit_hash"] for issue in pipelined["issues"]
    ]
    report = served("pipeline", "report", "pl-done")
    assert report.out == (folder / "report.md").read_text(encoding="utf-8")
    assert served("pipeline", "report", "pl-done", "--json").json["report"]["counts"] == {"completed": 2}


def test_a_work_order_of_a_pipeline_is_looked_at_like_any_other(served: Septet, pipelined: Answer) -> None:
    """Its runs are in the lanes, and yet `show`, `logs` and `rescue list` show its own runs and no others."""
    orders = [issue["order_id"] for issue in pipelined["issues"]]
    assert orders == ["pl-done-b", "pl-done-a"]
    runs = {name: served("show", name, "--json").json["runs"] for name in orders}
    assert [run["step"] for run in runs["pl-done-a"]] == [step["step"] for step in steps_of(served, "pl-done-a")]
    folders = {run["folder"] for name in orders for run in runs[name]}
    assert len(folders) == len(runs["pl-done-a"]) + len(runs["pl-done-b"])
    entries = served("logs", "pl-done-a", "--json").json["log_entries"]
    assert {entry["run"] for entry in entries} == {run["run"] for run in runs["pl-done-a"]}
    kept = served("rescue", "list", "pl-done-a", "--all", "--json").json["rescues"]
    assert {one["work_order_id"] for one in kept} == {"pl-done-a"}
    assert {one["snapshot"].partition("/")[0] for one in kept} == {"pl-done-planner", "pl-done-executor-1"}
    watched = json.loads(served("watch", "pl-done-a", "--json").out.splitlines()[-1])
    assert watched["log_entries"]
    assert {change["path"] for change in watched["diff"]["files"]} >= {watched["task"]["plan_path"]}
    with served.api as http:
        progress = http.get("/agent-work-orders/pl-done-a/git-progress").json()
    assert progress["git_commit_count"] == 2  # on top of the commit of its dependency


def steps_of(served: Septet, order: str) -> list[Answer]:
    steps: list[Answer] = served("steps", order, "--json").json["steps"]
    return steps


def test_people_decide_about_a_pipeline_that_runs(served: Septet, held: str) -> None:
    """A pipeline is paused and resumed, and an issue is skipped with a reason; an invalid decision exits with 5."""
    paused = served("pipeline", "pause", held, "--why", "for lunch", "--json")
    assert (paused.code, paused.json["pipeline"]["status"]) == (0, "paused")
    again = served("pipeline", "pause", held, "--json")
    assert (again.code, again.error["type"]) == (5, "RefusedTransition")
    resumed = served("pipeline", "resume", held, "--why", "after lunch", "--json")
    assert resumed.json["pipeline"]["status"] == "running"
    replanned = served("pipeline", "replan", held, "a", "--why", "leave the schema", "--json")
    assert (replanned.code, replanned.error["type"]) == (5, "RefusedTransition")
    assert served("pipeline", "skip", held, "a", "--why", "done by hand", "--json").code == 0
    served.wait_for_pipeline(held, lambda view: statuses_of(view) == ["planning", "skipped"])
    assert "done by hand" in served("pipeline", "show", held).out
    assert served("pipeline", "skip", held, "nobody", "--json").code == 5
    stopped = served("pipeline", "stop", held, "--why", "enough for today", "--json")
    assert stopped.json["pipeline"]["status"] == "stopping"


def test_cancel_ends_both_agents_and_keeps_what_is_known(served: Septet, held: str) -> None:
    """`cancel` returns at once; the closed pipeline refuses decisions, and is still shown."""
    assert served("pipeline", "cancel", held, "--json").code == 0
    view = served.wait_for_pipeline(held, "cancelled")
    assert statuses_of(view) == ["cancelled", "cancelled"]
    for decision in ("cancel", "pause"):
        assert served("pipeline", decision, held, "--json").code == 5
    assert not list((served.state / "runs" / f"{held}-executor-1").glob("[0-9]*"))


def test_wait_fails_where_an_issue_does(served: Septet, origin: Origin, tmp_path: Path) -> None:
    """Exit code 1 comes with the pipeline and the reason; a dependent issue is skipped."""
    served.scenario(
        "pl-fails-executor-1", {"steps": {"implement_plan": {"refuse": "The plan contradicts itself."}}}
    )
    file = listed(tmp_path, *ISSUES)
    answer = served("pipeline", "--repo", origin.bare, "--file", file, "--id", "pl-fails", "--wait", "--json")
    assert (answer.code, answer.json["ok"]) == (1, False)
    assert answer.json["error"]["type"] == "PipelineFailed"
    assert "b (failed), a (skipped)" in answer.json["error"]["message"]
    failed, skipped = answer.json["pipeline"]["issues"]
    assert "The plan contradicts itself." in failed["error"]["message"]
    assert "depends on issue b" in skipped["error"]["message"]


def test_a_dry_run_orders_the_issues_and_starts_nothing(served: Septet, origin: Origin, tmp_path: Path) -> None:
    """A dry run lists the issues behind their dependencies, and starts no pipeline."""
    words = ("pipeline", "--repo", origin.bare, "--file", listed(tmp_path, *ISSUES), "--id", "pl-dry", "--dry-run")
    assert [issue["id"] for issue in served(*words, "--json").json["issues"]] == ["b", "a"]
    assert served("pipeline", "show", "pl-dry", "--json").code == 3


@pytest.mark.usefixtures("pipelined", "done")
@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--repo", "{repo}", "--file", "{issues}", "--id", "pl-done"), 6, "was used before"),
        (("--repo", "{repo}", "--file", "{circle}"), 2, "they wait for each other: x → y → x"),
        (("show", "wo-done"), 3, "wo-done is a workflow of type WorkOrder, not Pipeline"),
    ],
)
def test_a_mistake_is_told_before_anything_starts(
    served: Septet, origin: Origin, tmp_path: Path, options: tuple[str, ...], code: int, says: str
) -> None:
    """Wrong options, circles and used or wrong ids are refused at once, each with its exit code."""
    circle = [{"id": "x", "title": "X", "depends_on": ["y"]}, {"id": "y", "title": "Y", "depends_on": ["x"]}]
    (tmp_path / "circle.json").write_text(json.dumps(circle))
    names = {"repo": origin.bare, "circle": tmp_path / "circle.json", "issues": listed(tmp_path, *ISSUES)}
    answer = served("pipeline", *(option.format(**names) for option in options), "--json")
    assert (answer.code, answer.json["ok"]) == (code, False)
    assert says in answer.error["message"]
