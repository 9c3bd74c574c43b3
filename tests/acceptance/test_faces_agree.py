"""Each operation through each face: command line, HTTP, an agent's tools and the typed client return one object."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from fakes.mcp_client import Tools, tools_of
from fakes.repositories import Origin, make_origin
from fakes.septet_command import Septet
from fakes.waiting import until

from clients.operations.operations import Operations, connect_operations
from septet.contracts.decisions import MoveCall, RetryCall, Target
from septet.contracts.order import WorkOrderInput
from septet.contracts.pipeline import PipelineInput, PipelineIssue
from septet.contracts.replies import Reply
from septet.contracts.task import Task
from septet.settings import Settings

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
class Faces:
    """The four faces of one `septet up`."""

    cli: Septet
    http: httpx.Client
    tools: Tools
    client: Operations


@dataclass(frozen=True)
class Operation:
    """An operation with its call on each face; `{id}` is the work order, `{repo}` the repository."""

    cli: tuple[str, ...]
    http: tuple[str, str, Answer | None]
    """Method, path and body."""
    tool: tuple[str, Answer] | None
    client: Callable[[Operations, str, str], Awaitable[Reply]]
    begins: tuple[str, ...] = ()
    """The command that prepares the operation: the options of `septet create`, or of `run`."""
    until: str = ""
    """The status to wait for before the call."""
    of: str = ""
    """The work order of the call, if the operation makes none."""
    http_only: frozenset[str] = field(default=frozenset())
    """The fields that only HTTP returns."""


def _begun(order_id: str, repo: str, **choices: Any) -> tuple[WorkOrderInput, str]:
    return WorkOrderInput(repository=repo, **TEXT, **choices), order_id


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
        client=lambda ask, name, repo: ask.orders.run(*_begun(name, repo, stage="collected")),
    ),
    "run": Operation(
        cli=("run", *CREATE, "--after", "wo-awaited"),
        http=("POST", ORDERS, {"repository_url": "{repo}", **TEXT, "id": "{id}", "after": ["wo-awaited"]}),
        tool=("run", {"repository": "{repo}", **TEXT, "id": "{id}", "after": ["wo-awaited"]}),
        client=lambda ask, name, repo: ask.orders.run(*_begun(name, repo, after=("wo-awaited",))),
    ),
    "move": Operation(
        cli=("move", "{id}", "blocked", "--why", "not now", "--json"),
        http=("POST", f"{ORDERS}/{{id}}/move", {"to": "blocked", "why": "not now"}),
        tool=("move", {"id": "{id}", "to": "blocked", "why": "not now"}),
        client=lambda ask, name, _repo: ask.decisions.move(name, MoveCall(to=Target.BLOCKED, why="not now")),
        begins=WAITING,
    ),
    "cancel": Operation(
        cli=("cancel", "{id}", "--json"),
        http=("POST", f"{ORDERS}/{{id}}/cancel", {}),
        tool=("cancel", {"id": "{id}"}),
        client=lambda ask, name, _repo: ask.decisions.cancel(name),
        begins=WAITING,
    ),
    "retry": Operation(
        cli=("retry", "{id}", "--json"),
        http=("POST", f"{ORDERS}/{{id}}/retry", {}),
        tool=("retry", {"id": "{id}"}),
        client=lambda ask, name, _repo: ask.decisions.retry(name, RetryCall()),
        begins=HELD,
        until="blocked",
    ),
    "approve": Operation(
        cli=("approve", "{id}", "--json"),
        http=("POST", f"{ORDERS}/{{id}}/approve", {}),
        tool=("approve", {"id": "{id}"}),
        client=lambda ask, name, _repo: ask.decisions.approve(name),
        begins=PLANNED,
        until="waiting",
    ),
    "reject": Operation(
        cli=("reject", "{id}", "--feedback", "shorter", "--json"),
        http=("POST", f"{ORDERS}/{{id}}/reject", {"feedback": "shorter"}),
        tool=("reject", {"id": "{id}", "feedback": "shorter"}),
        client=lambda ask, name, _repo: ask.decisions.reject(name, "shorter"),
        begins=PLANNED,
        until="waiting",
    ),
    "detail": Operation(
        cli=("show", "{id}", "--json"),
        http=("GET", f"{ORDERS}/{{id}}/detail", None),
        tool=("task_detail", {"id": "{id}"}),
        client=lambda ask, name, _repo: ask.reading.detail(name),
        of="wo-done",
    ),
    "steps": Operation(
        cli=("steps", "{id}", "--json"),
        http=("GET", f"{ORDERS}/{{id}}/steps", None),
        tool=("steps", {"id": "{id}"}),
        client=lambda ask, name, _repo: ask.reading.steps(name),
        of="wo-done",
        http_only=frozenset({"agent_work_order_id"}),
    ),
    "logs": Operation(
        cli=("logs", "{id}", "--json"),
        http=("GET", f"{ORDERS}/{{id}}/logs", None),
        tool=("logs", {"id": "{id}", "limit": 1000}),
        client=lambda ask, name, _repo: ask.reading.logs(name),
        of="wo-done",
        http_only=frozenset({"agent_work_order_id", "limit", "offset"}),
    ),
    "network": Operation(
        cli=("logs", "{id}", "--network", "--json"),
        http=("GET", f"{ORDERS}/{{id}}/network", None),
        tool=None,
        client=lambda ask, name, _repo: ask.reading.network(name),
        of="wo-done",
        http_only=frozenset({"agent_work_order_id", "limit", "offset"}),
    ),
    "board": Operation(
        cli=("board", "--project", "agreed", "--json"),
        http=("GET", "/board?project=agreed", None),
        tool=("board", {"project": "agreed", "limit": 500}),
        client=lambda ask, _name, _repo: ask.board.page("agreed"),
        begins=(*WAITING, "--project", "agreed"),
        of="wo-on-board",
    ),
    "rescues": Operation(
        cli=("rescue", "list", "{id}", "--all", "--json"),
        http=("GET", f"{ORDERS}/{{id}}/rescues?all=true", None),
        tool=("rescues", {"id": "{id}", "everything": True}),
        client=lambda ask, name, _repo: ask.rescues.list(name, everything=True),
        of="wo-done",
    ),
    "create-pipeline": Operation(
        cli=PIPELINE,
        http=("POST", "/pipelines", {"repository": "{repo}", "issues": ISSUES, "id": "{id}"}),
        tool=("create_pipeline", {"repository": "{repo}", "issues": ISSUES, "id": "{id}"}),
        client=lambda ask, name, repo: ask.pipelines.start(
            PipelineInput(repository=repo, issues=tuple(PipelineIssue(**issue) for issue in ISSUES)), name
        ),
    ),
    "pause-pipeline": Operation(
        cli=("pipeline", "pause", "{id}", "--json"),
        http=("POST", "/pipelines/{id}/pause", None),
        tool=("pipeline_decide", {"id": "{id}", "decision": "pause"}),
        client=lambda ask, name, _repo: ask.pipelines.decide(name, "pause"),
        begins=PIPELINE,
    ),
    "skip-in-pipeline": Operation(
        cli=("pipeline", "skip", "{id}", "b", "--why", "later", "--json"),
        http=("POST", "/pipelines/{id}/skip", {"issue_id": "b", "why": "later"}),
        tool=("pipeline_decide", {"id": "{id}", "decision": "skip", "issue_id": "b", "why": "later"}),
        client=lambda ask, name, _repo: ask.pipelines.decide(name, "skip", "b", why="later"),
        begins=PIPELINE,
    ),
    "cancel-pipeline": Operation(
        cli=("pipeline", "cancel", "{id}", "--json"),
        http=("POST", "/pipelines/{id}/cancel", {}),
        tool=("pipeline_decide", {"id": "{id}", "decision": "cancel"}),
        client=lambda ask, name, _repo: ask.pipelines.cancel(name),
        begins=PIPELINE,
    ),
    "show-pipeline": Operation(
        cli=("pipeline", "show", "{id}", "--json"),
        http=("GET", "/pipelines/{id}", None),
        tool=("get_pipeline", {"id": "{id}"}),
        client=lambda ask, name, _repo: ask.for_pipelines.show(name),
        begins=PIPELINE,
        of="pl-shown",
    ),
    "list-pipelines": Operation(
        cli=("pipeline", "list", "--json"),
        http=("GET", "/pipelines", None),
        tool=("list_pipelines", {"limit": 50}),
        client=lambda ask, _name, _repo: ask.pipelines.list(),
        begins=PIPELINE,
        of="pl-listed",
    ),
    "results-of-pipeline": Operation(
        cli=("pipeline", "results", "{id}", "--json"),
        http=("GET", "/pipelines/{id}/results", None),
        tool=None,
        client=lambda ask, name, _repo: ask.pipelines.results(name),
        begins=PIPELINE,
        of="pl-results",
    ),
    "report-of-pipeline": Operation(
        cli=("pipeline", "report", "{id}", "--json"),
        http=("GET", "/pipelines/{id}/report", None),
        tool=None,
        client=lambda ask, name, _repo: ask.pipelines.report(name),
        begins=PIPELINE,
        of="pl-report",
    ),
}


@asynccontextmanager
async def faces_of(served: Septet, log: Path) -> AsyncIterator[Faces]:
    """Open the four faces while the block lasts."""
    with served.api as http:
        async with tools_of(served, log) as tools:
            yield Faces(
                served, http, tools, await connect_operations(Settings(state_dir=served.state, environ=served.env))
            )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def faces(served: Septet, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Faces]:
    """Open the four faces once, in a task that also closes them, and create a collected work order to wait for."""
    opened: asyncio.Future[Faces] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def hold() -> None:
        async with faces_of(served, tmp_path_factory.mktemp("faces") / "mcp.log") as faces:
            opened.set_result(faces)
            await over.wait()

    origin = make_origin(served.root / "awaited", "app.git")
    origin.push({"README.md": "# app\n"})
    served("create", "--repo", origin.bare, "--title", "Stay collected", "--id", "wo-awaited", "--json")
    holding = asyncio.create_task(hold())
    both: list[asyncio.Future[Any]] = [holding, opened]
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    try:
        if not opened.done():
            await holding  # it raises the reason
        yield opened.result()
    finally:
        over.set()
        await holding


def filled(template: Any, names: dict[str, str]) -> Any:
    """Return a call with its work order and repository filled in."""
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


def begun(faces: Faces, operation: Operation, names: dict[str, str]) -> None:
    """Prepare a work order for the operation."""
    if not operation.begins:
        return
    if operation.begins is PIPELINE:
        held = {"steps": {"classify_issue": {"wait_for": str(faces.cli.root / "never")}}}
        faces.cli.scenario(f"{names['id']}-planner", held)
    assert faces.cli(*filled(operation.begins, names)).code == 0
    if operation.begins is PIPELINE:
        stream = faces.cli.state / "runs" / f"{names['id']}-planner" / "1-classify_issue-1" / "stdout.jsonl"
        until(lambda: stream.exists() and b'"usage"' in stream.read_bytes())  # the spent tokens count
    if operation is OPERATIONS["board"]:  # the list shows it a moment later
        faces.cli.wait_for(operation.http[1], lambda board: board["summary"]["total"])
    if operation.until == "blocked":
        assert faces.cli("move", names["id"], "blocked", "--json").code == 0
    elif operation.until:
        faces.cli.wait_for_order(names["id"], operation.until)


def over_http(faces: Faces, operation: Operation, names: dict[str, str]) -> Answer:
    """Call over HTTP; return a started work order without the additional names of another system."""
    method, path, body = filled(operation.http, names)
    answered = faces.http.request(method, path, json=body)
    assert answered.is_success, answered.text
    told: Answer = answered.json()
    if path == ORDERS:
        return {"ok": True, "task": {name: told[name] for name in Task.model_fields}}
    return {name: told[name] for name in told if name not in operation.http_only}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", OPERATIONS)
async def test_every_face_answers_the_same_object(
    name: str, faces: Faces, done: Answer, origin: Origin, tmp_path: Path
) -> None:
    """An operation returns the same object on each face."""
    operation = OPERATIONS[name]
    known = {"repo": str(origin.bare), "issues": str(tmp_path / "issues.json")}
    (tmp_path / "issues.json").write_text(json.dumps(ISSUES), encoding="utf-8")
    cancel = ("pipeline", "cancel") if "pipeline" in name else ("cancel",)
    answers = []
    if operation.of:
        begun(faces, operation, {"id": operation.of, **known})
    for face in ("cl", "ht", "to", "ty"):
        names = {"id": operation.of or f"wo-{name}-{face}", **known}
        if face == "to" and operation.tool is None:
            continue
        if not operation.of:
            begun(faces, operation, names)
        answers.append(common(await asked(faces, face, operation, names), names["id"]))
        if not operation.of:
            faces.cli(*cancel, names["id"], "--json")
    if operation.of and operation.begins is PIPELINE:
        faces.cli(*cancel, operation.of, "--json")
    assert answers[0]["ok"] is True
    assert answers[1:] == answers[:1] * (len(answers) - 1)
    if not operation.of:
        assert (answers[0].get("task") or answers[0]["pipeline"])["id"] == "wo-it"
    assert done["id"] == "wo-done"


async def asked(faces: Faces, face: str, operation: Operation, names: dict[str, str]) -> Answer:
    """Call the operation on a face, and return the answer."""
    if face == "cl":
        return faces.cli(*filled(operation.cli, names)).json
    if face == "ht":
        return over_http(faces, operation, names)
    if face == "to":
        tool, arguments = filled(operation.tool, names)
        return await faces.tools(tool, **arguments)
    return (await operation.client(faces.client, names["id"], names["repo"])).model_dump(mode="json")
