import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from fakes.repositories import Origin
from fakes.septet_command import ONCE, Septet

Task = dict[str, Any]


def test_run_waits_for_the_pull_request(done: Task) -> None:
    """`run --wait --json` returns the completed work order, and exits with 0."""
    assert (done["id"], done["status"], done["stage"]) == ("wo-done", "completed", "review")
    assert done["branch_name"] == "septet/feat-wo-done-say-goodbye-too"
    assert done["plan_path"] == "specs/wo-done-planner-say-goodbye-too.md"
    assert done["issue_number"] == ""
    assert done["pr_url"].endswith("/app.git/pull/1")


def test_show_answers_task_runs_and_history(served: Septet, done: Task) -> None:
    """`show` returns the whole work order, each agent run, and the history of its stages."""
    answer = served("show", "wo-done", "--json").json
    detail = {"runs", "history", "waiting_for", "base", "estimate", "refused_in_setup", "fails_on_base"}
    assert set(answer) == {"ok", "task"} | detail
    assert answer["waiting_for"] is None
    assert answer["task"] == done
    assert [run["run"] for run in answer["runs"]] == ONCE
    assert {run["exit_code"] for run in answer["runs"]} == {0}
    assert [(move["from"], move["to"]) for move in answer["history"]] == [
        ("", "executing"),
        ("executing", "review"),
    ]
    assert all(move["when"].endswith("Z") for move in answer["history"])


def test_logs_tell_what_the_agents_said_and_raw_gives_their_bytes(served: Septet, done: Task) -> None:
    """`logs --json` is one object; `logs --raw` is the stream, byte by byte; without them it is text."""
    entries = served("logs", done["id"], "--json").json["log_entries"]
    assert {entry["run"] for entry in entries} == {*ONCE}
    assert {"text", "tool_call", "result"} <= {entry["kind"] for entry in entries}
    streams = [served.state / "runs" / "wo-done" / run for run in ONCE]
    raw = served("logs", done["id"], "--raw").out
    assert raw == "".join((folder / "stdout.jsonl").read_text(encoding="utf-8") for folder in streams)
    told = served("logs", done["id"]).out
    assert "create_pull_request · scripted  (7-create_pull_request-1)" in told
    assert '"plan_path"' not in told
    assert '"plan_path"' in served("logs", done["id"], "--structured").out


def test_logs_follow_prints_one_object_a_line(served: Septet, done: Task) -> None:
    """`logs --follow --json` ends with the work order, and each of its lines is one JSON object."""
    ended = served("logs", done["id"], "--follow", "--json")
    assert ended.code == 0
    assert {json.loads(line)["kind"] for line in ended.out.splitlines()} >= {"text", "result"}


def test_an_issue_of_the_local_forge_becomes_a_pull_request(served: Septet, origin: Origin) -> None:
    """`issue add` returns the number for `run --issue`; branch and plan carry the number. Labels are kept."""
    labels = ("--label", "go", "--label", "now")
    added = served("issue", "add", "--repo", origin.checkout, "--title", "A typo", *labels, "--json").json["issue"]
    assert (added["number"], added["labels"]) == (1, ["go", "now"])
    number = served(
        "issue", "add", "--repo", origin.bare, "--title", "The greeting is wrong", "--body", "Fix it.", "--json"
    ).json["issue"]["number"]
    ended = served("run", "--repo", origin.bare, "--issue", str(number), "--id", "wo-issue", "--wait", "--json")
    task = ended.json["task"]
    assert (ended.code, task["status"], task["source"]) == (0, "completed", "local")
    assert (task["issue_number"], task["issue_class"], task["title"]) == ("1", "/bug", "The greeting is wrong")
    assert task["branch_name"] == "septet/bug-1-the-greeting-is-wrong"
    assert origin.sha(task["branch_name"]) == task["commit_sha"]


def test_an_issue_is_read_from_a_file(served: Septet, origin: Origin, tmp_path: Path) -> None:
    """The first line of `--issue-file` is the title; without --wait the command returns at once."""
    (tmp_path / "issue.md").write_text("# Say goodbye\n\nAt the end.\n", encoding="utf-8")
    ended = served("run", "--repo", origin.bare, "--issue-file", tmp_path / "issue.md", "--json")
    assert ended.code == 0
    task = ended.json["task"]
    assert (task["title"], task["description"]) == ("Say goodbye", "At the end.")
    assert task["status"] == "running"
    assert served.closed(task["id"])["status"] == "completed"


def test_a_work_order_that_fails_is_exit_1_with_its_task(served: Septet, origin: Origin) -> None:
    """`--wait` on a failed work order returns the error, the remedy and the work order with its rescue."""
    order = served.scenario(
        "wo-refused", {"steps": {"implement_plan": {"refuse": "The plan contradicts itself."}}}
    )
    ended = served("run", "--repo", origin.bare, "--title", "Do it", "--id", order, "--wait", "--json")
    answer = ended.json
    assert (ended.code, answer["ok"]) == (1, False)
    assert "The plan contradicts itself" in answer["error"]["message"]
    assert f"`septet retry {order}`" in answer["error"]["remedy"]
    assert answer["task"]["error"]["remedy"] == answer["error"]["remedy"]
    assert (answer["task"]["status"], answer["task"]["stage"]) == ("failed", "blocked")
    assert answer["task"]["error"]["message"] == answer["error"]["message"]
    assert answer["task"]["rescues"]
    assert served.runs(order)[-2:] == ["5-implement_plan-1", "5-implement_plan-2"]


@pytest.mark.parametrize(
    ("argv", "code", "named"),
    [
        (("show", "wo-unknown"), 3, "wo-unknown"),
        (("rescue", "restore", "wo-unknown/0001-rescue", "--to", "/nowhere/at/all"), 3, "wo-unknown/0001-rescue"),
        (("cancel", "wo-done"), 5, "completed"),
        (("retry", "wo-done"), 5, "completed"),
        (("run", "--repo", "DONE", "--title", "T", "--id", "wo-done"), 6, "wo-done"),
    ],
)
def test_each_refusal_has_its_exit_code_and_names_what_was_wrong(
    served: Septet, done: Task, argv: tuple[str, ...], code: int, named: str
) -> None:
    """3 not found, 5 refused, 6 used before: one JSON object with type, message and remedy."""
    ended = served(*(done["repository_url"] if part == "DONE" else part for part in argv), "--json")
    assert ended.code == code, ended
    assert named in ended.error["message"]
    assert "Traceback" not in ended.err + ended.out


def test_the_version_is_told(septet: Septet) -> None:
    """`--version` prints the installed version, and nothing else."""
    ended = septet("--version")
    assert (ended.code, ended.out, ended.err) == (0, f"septet {version('septet')}\n", "")
