import json
import re
from pathlib import Path
from typing import Any

import pytest
from fakes.mcp_client import tools_of
from fakes.mcp_lines import WITH_TASKS, mcp_lines
from fakes.repositories import Origin, git
from fakes.septet_command import Septet

from septet.keys.scanner import AddedLine, KeyScanner
from septet.state import StateDir

pytestmark = pytest.mark.faces


def waits_with_a_plan(served: Septet, order: str, *, other_than: str | None = None) -> dict[str, Any]:
    def waits(detail: dict[str, Any]) -> bool:
        task = detail["task"]
        return bool(task["status"] == "waiting" and task["plan_sha256"] != other_than)

    return served.wait_for_detail(order, waits)


def test_a_created_work_order_waits_on_the_board_and_is_moved_on(served: Septet, origin: Origin) -> None:
    """`create` starts nothing; after a move to triaged the work order runs; its history has each move and its reason."""
    made = served(
        "create", "--repo", origin.bare, "--title", "Later", "--id", "wo-created-later", "--priority", "5", "--effort", "1",
        "--project", "shop", "--label", "soon", "--json",
    )  # fmt: skip
    assert made.code == 0, made
    task = made.json["task"]
    assert (task["status"], task["stage"], task["score"], task["project"]) == ("pending", "collected", 7, "shop")
    assert not (served.state / "runs" / "wo-created-later").exists()

    held = served("move", "wo-created-later", "blocked", "--why", "the design is missing", "--json").json["task"]
    assert (held["status"], held["stage"]) == ("pending", "blocked")
    shown = served("show", "wo-created-later").out
    assert re.search(r"blocked +the design is missing", shown)
    assert "septet move wo-created-later triaged" in shown
    assert served("move", "wo-created-later", "triaged", "--json").code == 0
    assert served.closed("wo-created-later")["status"] == "completed"
    history = served("show", "wo-created-later", "--json").json["history"]
    assert [(move["from"], move["to"]) for move in history] == [
        ("", "collected"), ("collected", "blocked"), ("blocked", "triaged"), ("triaged", "executing"),
        ("executing", "review"),
    ]  # fmt: skip
    assert (history[1]["why"], bool(history[1]["who"])) == ("the design is missing", True)


def test_a_plan_is_approved_as_it_was_read(served: Septet, origin: Origin) -> None:
    """With --approve-plan no step follows the plan before a person approves exactly this plan."""
    served.start(origin, "wo-approved", "--approve-plan")
    answer = waits_with_a_plan(served, "wo-approved")
    plan = answer["task"]["plan_sha256"]
    assert "septet approve" in answer["waiting_for"]
    assert f"SHA-256 {plan}" in served("show", "wo-approved").out
    wrong = served("approve", "wo-approved", "--plan", "0" * 64, "--json")
    assert (wrong.code, plan in wrong.error["remedy"]) == (5, True)
    assert served("approve", "wo-approved", "--plan", "yes", "--json").code == 2
    assert not any("generate_branch" in name for name in served.runs("wo-approved"))
    approved = served("approve", "wo-approved", "--plan", plan, "--why", "short")
    assert (approved.code, f"SHA-256 {plan}" in approved.out) == (0, True), approved
    assert served.closed("wo-approved")["status"] == "completed"
    assert "the plan is approved (short)" in whys(served, "wo-approved")
    assert served("approve", "wo-approved", "--json").code == 5


def test_a_plan_alone_is_kept_until_a_retry_continues_with_it(served: Septet, origin: Origin) -> None:
    """With --plan-only the work order completes with its proven plan and names the retry, which implements this plan."""
    run = ("run", "--repo", origin.bare, "--title", "Plan it", "--id", "wo-planned", "--plan-only", "--wait")
    ended = served(*run)
    assert ended.code == 0, ended
    assert "septet retry wo-planned" in ended.out
    answer = served("show", "wo-planned", "--json").json
    task = answer["task"]
    assert (task["status"], task["stage"], task["pr_url"], task["branch_name"]) == (
        "completed",
        "done",
        None,
        None,
    )
    assert [step["step"] for step in task["steps"]] == ["classify_issue", "build_plan", "find_plan_file"]
    assert "septet retry wo-planned continues with it" in answer["waiting_for"]
    plan = served("plan", "wo-planned", "--json").json
    assert plan["plan_sha256"] == task["plan_sha256"]
    assert "Plan it" in plan["plan"]["text"]
    served.wait_for("/board", lambda board: "wo-planned" in [row["id"] for row in board["stages"]["done"]])
    assert "wo-planned" in [row["id"] for row in served("board", "--json").json["stages"]["done"]]

    retried = served("retry", "wo-planned", "--wait", "--json")
    assert retried.code == 0, retried
    again = retried.json["task"]
    assert (again["status"], again["plan_sha256"]) == ("completed", task["plan_sha256"])
    assert again["pr_url"]
    assert [name for name in served.runs("wo-planned") if "plan" in name] == [
        "2-build_plan-1", "3-find_plan_file-1", "5-implement_plan-1",
    ]  # fmt: skip


def whys(served: Septet, order: str) -> list[str]:
    return [move["why"] for move in served("show", order, "--json").json["history"]]


@pytest.mark.timeout(300)  # the scanner compiles its rules first
async def test_what_looks_like_a_key_waits_for_a_person(served: Septet, origin: Origin, tmp_path: Path) -> None:
    """After one retry of the agent, each face lists the findings and approves them by id; no face shows the value."""
    tokens = [
        "ghp_" + end for end in ("aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5", "zY9dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3xW1")
    ]
    tokens += ["ghp_" + "Qw8dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE4tR6", "ghp_" + "Lk2dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE5uS7"]
    KeyScanner(StateDir(served.state).key_scanner).scan(
        [AddedLine("a.py", 1, tokens[0].encode())]
    )  # compiles rules
    files = {f"src/{name}.py": f"TOKEN = '{token}'\n" for name, token in zip("abcd", tokens, strict=True)}
    order = served.start(origin, "wo-found", create_commit={"edits": files})
    waits = served.wait_for_detail(order, lambda detail: detail["task"]["findings"])
    first, second, third, fourth = waits["task"]["findings"]
    assert (first["path"], first["line"], first["rule"]) == ("src/a.py", 1, "github-pat")
    command = f"septet approve {order} " + " ".join(
        f"--finding {finding['id']}" for finding in (first, second, third, fourth)
    )
    assert command in waits["waiting_for"]
    assert command in served("show", order).out
    assert served("approve", order, "--json").code == 5
    assert served("approve", order, "--finding", "it", "--json").code == 2
    assert git(origin.bare, "branch", "--list", waits["task"]["branch_name"]) == ""
    with served.api as api:
        page = api.get(
            f"/work-orders/{order}?token={served.page.rpartition('token=')[2]}", follow_redirects=True
        ).text
        assert f'value="{first["id"]}"' in page
        assert "Have it removed" in page
        left = api.post(f"/agent-work-orders/{order}/approve", json={"findings": [first["id"]]}).json()["task"]
    assert (left["status"], left["findings"]) == ("waiting", [second, third, fourth])
    async with tools_of(served, tmp_path / "mcp.log") as tools:
        left = (await tools("approve", id=order, findings=[second["id"]]))["task"]
    assert left["findings"] == [third, fourth]
    approved = served("approve", order, "--finding", third["id"], "--why", "of a test")
    assert approved.code == 0, approved
    with mcp_lines(served, WITH_TASKS) as client:
        ((key, asked),) = client.task(order)["inputRequests"].items()
        assert "src/d.py line 1" in asked["params"]["message"]
        letting_pass = {"action": "accept", "content": {"decision": "approve"}}
        client.ask("tasks/update", taskId=order, inputResponses={key: letting_pass})
    assert served.closed(order)["status"] == "completed"
    assert not [
        token
        for token in tokens
        if token in json.dumps([waits, asked]) + served("show", order, "--json").out + page
    ]
