"""Each operation through each face: command line, HTTP and an agent's tools return one object."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fakes.mcp_client import Tools
from fakes.repositories import Origin, make_origin
from fakes.septet_command import Septet
from fakes.waiting import until

from septet.contracts.task import Task

pytestmark = [pytest.mark.faces, pytest.mark.asyncio(loop_scope="module")]

ORDERS = "/agent-work-orders"
TEXT: dict[str, Any] = {"title": "Say goodbye too", "description": "The app greets only."}
OWN = {
    *("created_at", "updated_at", "timestamp", "duration_seconds", "session_id", "plan_sha256", "age_seconds"),
    *("closed_at", "ended_at", "executed_at", "opened_by"),
}
"""Fields that differ between work orders and between moments."""
Answer = dict[str, Any]


@dataclass(frozen=True)
class Operation:
    """An operation with its call on each face; `{id}` is the work order, `{repo}` the repository."""

    cli: tuple[str, ...]
    http: tuple[str, str, Answer | None]
    """Method, path and body."""
    tool: tuple[str, Answer]
    begins: tuple[str, ...] = ()
    """The command that prepares the operation: the options of `septet create`, or of `run`."""
    until: str = ""
    """The status to wait for before the call."""
    of: str = ""
    """The work order of the call, if the operation makes none."""
    http_only: frozenset[str] = field(default=frozenset())
    """The fields that only HTTP returns."""


CREATE = ("--repo", "{repo}", "--title", TEXT["title"], "--body", TEXT["description"], "--id", "{id}", "--json")
WAITING = ("create", *CREATE)
PLANNED = ("run", *CREATE, "--approve-plan")
HELD = ("create", *CREATE, "--stage", "triaged", "--after", "wo-awaited")
PIPELINE = ("pipeline", "--repo", "{repo}", "--file", "{issues}", "--id", "{id}", "--json")
ISSUES: list[dict[str, Any]] = [
    {"id": "a", "title": "A", "body": "First."},
    {"id": "b", "title": "B", "body": "Then."},
]
OPERATIONS = {
    "create": Operation(
        cli=WAITING,
        http=("POST", ORDERS, {"repository_url": "{repo}", **TEXT, "id": "{id}", "stage": "collected"}),
        tool=("create_task", {"repository": "{repo}", **TEXT, "id": "{id}"}),
    ),
    "run": Operation(
        cli=("run", *CREATE, "--after", "wo-awaited"),
        http=("POST", ORDERS, {"repository_url": "{repo}", **TEXT, "id": "{id}", "after": ["wo-awaited"]}),
        tool=("run", {"repository": "{repo}", **TEXT, "id": "{id}", "after": ["wo-awaited"]}),
    ),
    "move": Operation(
        cli=("move", "{id}", "blocked", "--why", "not now", "--json"),
        http=("POST", f"{ORDERS}/{{id}}/move", {"to": "blocked", "why": "not now"}),
        tool=("move", {"id": "{id}", "to": "blocked", "why": "not now"}),
        begins=WAITING,
    ),
    "cancel": Operation(
        cli=("cancel", "{id}", "--json"),
        http=("POST", f"{ORDERS}/{{id}}/cancel", {}),
        tool=("cancel", {"id": "{id}"}),
        begins=WAITING,
    ),
    "retry": Operation(
        cli=("retry", "{id}", "--json"),
        http=("POST", f"{ORDERS}/{{id}}/retry", {}),
        tool=("retry", {"id": "{id}"}),
        begins=HELD,
        until="blocked",
    ),
    "reject": Operation(
        cli=("reject", "{id}", "--feedback", "shorter", "--json"),
        http=("POST", f"{ORDERS}/{{id}}/reject", {"feedback": "shorter"}),
        tool=("reject", {"id": "{id}", "feedback": "shorter"}),
        begins=PLANNED,
        until="waiting",
    ),
    "detail": Operation(
        cli=("show", "{id}", "--json"),
        http=("GET", f"{ORDERS}/{{id}}/detail", None),
        tool=("task_detail", {"id": "{id}"}),
        of="wo-done",
    ),
    "steps": Operation(
        cli=("steps", "{id}", "--json"),
        http=("GET", f"{ORDERS}/{{id}}/steps", None),
        tool=("steps", {"id": "{id}"}),
        of="wo-done",
        http_only=frozenset({"agent_work_order_id"}),
    ),
    "logs": Operation(
        cli=("logs", "{id}", "--json"),
        http=("GET", f"{ORDERS}/{{id}}/logs", None),
        tool=("logs", {"id": "{id}", "limit": 1000}),
        of="wo-done",
        http_only=frozenset({"agent_work_order_id", "limit", "offset"}),
    ),
    "board": Operation(
        cli=("board", "--project", "agreed", "--json"),
        http=("GET", "/board?project=agreed", None),
        tool=("board", {"project": "agreed", "limit": 500}),
        begins=(*WAITING, "--project", "agreed"),
        of="wo-on-board",
    ),
    "rescues": Operation(
        cli=("rescue", "list", "{id}", "--all", "--json"),
        http=("GET", f"{ORDERS}/{{id}}/rescues?all=true", None),
        tool=("rescues", {"id": "{id}", "everything": True}),
        of="wo-done",
    ),
    "create-pipeline": Operation(
        cli=PIPELINE,
        http=("POST", "/pipelines", {"repository": "{repo}", "issues": ISSUES, "id": "{id}"}),
        tool=("create_pipeline", {"repository": "{repo}", "issues": ISSUES, "id": "{id}"}),
    ),
    "skip-in-pipeline": Operation(
        cli=("pipeline", "skip", "{id}", "b", "--why", "later", "--json"),
        http=("POST", "/pipelines/{id}/skip", {"issue_id": "b", "why": "later"}),
        tool=("pipeline_decide", {"id": "{id}", "decision": "skip", "issue_id": "b", "why": "later"}),
        begins=PIPELINE,
    ),
    "show-pipeline": Operation(
        cli=("pipeline", "show", "{id}", "--json"),
        http=("GET", "/pipelines/{id}", None),
        tool=("get_pipeline", {"id": "{id}"}),
        begins=PIPELINE,
        of="pl-shown",
    ),
    "list-pipelines": Operation(
        cli=("pipeline", "list", "--json"),
        http=("GET", "/pipelines", None),
        tool=("list_pipelines", {"limit": 50}),
        begins=PIPELINE,
        of="pl-listed",
    ),
}


@pytest.fixture(scope="module")
def _awaited(served: Septet) -> None:
    """Create a collected work order, for which other work orders wait."""
    origin = make_origin(served.root / "awaited", "app.git")
    origin.push({"README.md": "# app\n"})
    served("create", "--repo", origin.bare, "--title", "Stay collected", "--id", "wo-awaited", "--json")


def filled(template: Any, names: dict[str, str]) -> Any:
    text = json.dumps(template)
    for name, value in names.items():
        text = text.replace(f"{{{name}}}", value)
    return json.loads(text)


def common(value: Any, name: str) -> Any:
    """Return an answer without fields that differ by work order, and without a start's estimate (see `test_costs`)."""
    if isinstance(value, dict):
        return {
            key: None if key in OWN else common(part, name) for key, part in value.items() if key != "estimate"
        }
    if isinstance(value, list):
        return [common(part, name) for part in value]
    if not isinstance(value, str):
        return value
    return re.sub(
        r"^.* (skipped|paused|resumed|stopped) it", r"somebody \1 it", value.replace(name, "wo-it")
    )  # each face has its own user


def begun(served: Septet, operation: Operation, names: dict[str, str]) -> None:
    if not operation.begins:
        return
    if operation.begins is PIPELINE:
        held = {"steps": {"classify_issue": {"wait_for": str(served.root / "never")}}}
        served.scenario(f"{names['id']}-planner", held)
    assert served(*filled(operation.begins, names)).code == 0
    if operation.begins is PIPELINE:
        stream = served.state / "runs" / f"{names['id']}-planner" / "1-classify_issue-1" / "stdout.jsonl"
        until(lambda: stream.exists() and b'"usage"' in stream.read_bytes())  # the spent tokens count
    if operation is OPERATIONS["board"]:  # the list shows it a moment later
        served.wait_for(operation.http[1], lambda board: board["summary"]["total"])
    if operation.until == "blocked":
        assert served("move", names["id"], "blocked", "--json").code == 0
    elif operation.until:
        served.wait_for_order(names["id"], operation.until)


def over_http(served: Septet, operation: Operation, names: dict[str, str]) -> Answer:
    """Call over HTTP; return a started work order without the additional names of another system."""
    method, path, body = filled(operation.http, names)
    with served.api as http:
        answered = http.request(method, path, json=body)
    assert answered.is_success, answered.text
    told: Answer = answered.json()
    if path == ORDERS:
        return {"ok": True, "task": {name: told[name] for name in Task.model_fields}}
    return {name: told[name] for name in told if name not in operation.http_only}


@pytest.mark.usefixtures("_awaited", "done")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", OPERATIONS)
async def test_every_face_answers_the_same_object(
    name: str, served: Septet, tools: Tools, origin: Origin, tmp_path: Path
) -> None:
    """An operation returns the same object on each face."""
    operation = OPERATIONS[name]
    known = {"repo": str(origin.bare), "issues": str(tmp_path / "issues.json")}
    (tmp_path / "issues.json").write_text(json.dumps(ISSUES), encoding="utf-8")
    cancel = ("pipeline", "cancel") if "pipeline" in name else ("cancel",)
    # Names of one length: a plan with its name is counted in bytes.
    faces = {face: {"id": operation.of or f"wo-{name}-{face}", **known} for face in ("cl", "ht", "to")}
    of_each = {names["id"]: names for names in faces.values()}
    with ThreadPoolExecutor(len(of_each)) as pool:
        list(pool.map(lambda names: begun(served, operation, names), of_each.values()))
    answers = [
        common(await asked(served, tools, face, operation, names), names["id"]) for face, names in faces.items()
    ]
    for order in {*of_each} - {"wo-done"}:
        served(*cancel, order, "--json")
    assert answers[0]["ok"] is True
    assert answers[1:] == answers[:1] * 2
    if not operation.of:
        assert (answers[0].get("task") or answers[0]["pipeline"])["id"] == "wo-it"


async def asked(served: Septet, tools: Tools, face: str, operation: Operation, names: dict[str, str]) -> Answer:
    if face == "cl":
        return served(*filled(operation.cli, names)).json
    if face == "ht":
        return over_http(served, operation, names)
    tool, arguments = filled(operation.tool, names)
    return await tools(tool, **arguments)
