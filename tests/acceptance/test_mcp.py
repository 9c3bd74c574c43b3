"""`septet mcp` and `/mcp` as an agent uses them: the SDK's own client, and a real `septet up` behind it."""

import json
import signal
import subprocess
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fakes.mcp_client import Tools, checked, tools_of
from fakes.mcp_lines import VERSION, WITH_TASKS
from fakes.repositories import Origin
from fakes.septet_command import PROGRAMS, WITHIN_SECONDS, Septet
from fakes.waiting import wait_until
from jsonschema import Draft202012Validator
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

pytestmark = pytest.mark.faces
beside_others = pytest.mark.asyncio(loop_scope="module")

DOES = {"create_task", "run", "move", "approve", "reject", "cancel", "retry", "create_pipeline", "pipeline_decide"}
DOES |= {"restore_rescue", "raise_budget"}
LOOKS = {
    *("budgets", "costs", "plan", "diff", "wait", "task_detail", "board", "steps", "logs", "rescues"),
    *("get_pipeline", "list_pipelines"),
}


MISTAKES: list[tuple[str, dict[str, Any], str, str]] = [
    ("task_detail", {"id": "wo-nobody"}, "NotFound", "wo-nobody"),
    ("task_detail", {"id": 7}, "InvalidInput", "id "),
    ("logs", {"id": "wo-1", "limit": 0}, "InvalidInput", "limit "),
    ("restore_rescue", {"snapshot": "none"}, "NotFound", "none"),
    ("run", {"repository": "."}, "InvalidInput", "issue or title is missing"),
    ("run", {"repository": ".", "issue": 1, "steps": {"implement_plan": {"x": 1}}}, "InvalidInput", "steps."),
    ("create_task", {"repository": ".", "title": "x", "stage": "done"}, "InvalidInput", "stage "),
    ("pipeline_decide", {"id": "pl-nobody", "decision": "skip"}, "InvalidInput", "issue_id"),
    ("create_pipeline", {"repository": ".", "issues": [1, 1]}, "InvalidInput", "more than once"),
]
"""Calls, and the type and a part of the message of their errors."""


async def seen(tools: Tools, order: str, *statuses: str) -> dict[str, Any]:
    answer = await wait_until(
        lambda: tools("task_detail", id=order), lambda answer: answer["task"]["status"] in statuses
    )
    task: dict[str, Any] = answer["task"]
    return task


@beside_others
async def test_every_tool_says_what_it_takes_answers_and_does(tools: Tools) -> None:
    """Each tool has a description, schemas that refuse unknown fields, and a hint whether it only reads."""
    assert set(tools.tools) == DOES | LOOKS
    for name, tool in tools.tools.items():
        assert tool.description
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is not None
        Draft202012Validator.check_schema(tool.input_schema)
        Draft202012Validator.check_schema(tool.output_schema)
        for nonsense in ({}, {"ok": True, "nonsense": 1}, {"ok": False}):
            assert not Draft202012Validator(tool.output_schema).is_valid(nonsense), (name, nonsense)
        assert tools.hints(name).read_only_hint is (name in LOOKS)
    assert tools.hints("cancel").destructive_hint


async def _agree(tools: Tools, served: Septet, call: tuple[str, dict[str, Any]], command: tuple[str, ...]) -> bool:
    return await tools(call[0], **call[1]) == served(*command, "--json").json


@beside_others
async def test_tools_answer_what_the_commands_print(tools: Tools, served: Septet, done: dict[str, Any]) -> None:
    """The structured content equals the object of the command with --json; `test_faces_agree` has the other tools."""
    order = done["id"]
    looks: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
        "wait": ({"id": order}, ("show", order)),
        "plan": ({"id": order}, ("plan", order)),
        "diff": ({"id": order}, ("diff", order)),
        "budgets": ({}, ("budget", "list")),
        "costs": ({"by": "week"}, ("costs", "--by", "week")),
    }
    for name, (arguments, command) in looks.items():
        # Work orders of earlier tests may still end between the two calls.
        await wait_until(partial(_agree, tools, served, (name, arguments), command))


@beside_others
async def test_a_wait_ends_when_somebody_is_needed(
    tools: Tools, served: Septet, origin: Origin, done: dict[str, Any]
) -> None:
    """`wait` returns when a plan waits for approval, or at its time limit; a tool restores a rescue."""
    order = {"id": "wo-mcp-wait", "repository": str(origin.bare), "title": "Wait for me", "approve_plan": True}
    await tools("run", **order)
    waiting = await tools("wait", id=order["id"], seconds=int(WITHIN_SECONDS))
    assert waiting["task"]["status"] == "waiting", waiting
    plan = await tools("plan", id=order["id"])
    assert plan["plan_sha256"] == waiting["task"]["plan_sha256"]
    await tools("cancel", id=order["id"])
    assert (await tools("wait", id=order["id"], seconds=int(WITHIN_SECONDS)))["task"]["status"] == "cancelled"
    kept = (await tools("rescues", id=done["id"], everything=True))["rescues"][0]["snapshot"]
    restored = await tools("restore_rescue", snapshot=kept)
    assert (Path(restored["restored_to"]) / "app.py").exists()
    assert (await tools.refused("restore_rescue", snapshot=kept))["type"] == "RefusedTransition"


async def test_paths_are_relative_to_where_the_agent_works(served: Septet, origin: Origin, tmp_path: Path) -> None:
    """The server resolves a relative path of a repository from the folder of its start."""
    async with tools_of(served, tmp_path / "mcp.log", cwd=origin.bare.parent) as tools:
        made = await tools("create_task", repository=f"./{origin.bare.name}", title="Do it", id="wo-mcp-path")
    assert made["task"]["repository_url"] == str(origin.bare)


@beside_others
async def test_mistakes_are_answers_that_say_how_to_go_on(tools: Tools) -> None:
    """A mistake is an error result with type, message and remedy, valid by the tool's schema."""
    for name, arguments, kind, told in MISTAKES:
        error = await tools.refused(name, **arguments)
        assert error["type"] == kind, (name, arguments)
        assert told in error["message"]
        assert error["remedy"]


@beside_others
async def test_tool_that_there_is_not_is_an_error_of_the_protocol(tools: Tools) -> None:
    """The error names the existing tools."""
    with pytest.raises(MCPError, match="task_detail"):
        await tools.client.call_tool("sleep", {})


async def test_server_that_comes_and_goes_is_told_and_found_again(septet: Septet, tmp_path: Path) -> None:
    """One `septet mcp` survives its servers: without a server its tools report that, with the next server they answer."""
    with ExitStack() as ups:
        async with tools_of(septet, tmp_path / "mcp.log") as tools:
            assert (await tools.refused("board"))["type"] == "ServerNotReached"
            for _ in range(2):
                up = ups.enter_context(septet.up())
                assert (await tools("board"))["summary"]["total"] == 0
                assert (await tools.refused("task_detail", id="wo-nobody"))["type"] == "NotFound"
                assert up.end(signal.SIGINT) == 0
                gone = await tools.refused("board")
                assert gone["type"] == "ServerNotReached"
                assert "septet up" in gone["remedy"]


ASKED: list[dict[str, Any]] = [
    {
        "method": "initialize",
        "id": 1,
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"method": "tools/list", "id": 2},
    {"method": "tools/call", "id": 3, "params": {"name": "board", "arguments": {}}},
]


def started(septet: Septet) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [PROGRAMS / "septet", "mcp"],
        env={**septet.env, "SEPTET_LOG_LEVEL": "debug"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.writelines(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in ASKED)
    process.stdin.flush()
    return process


def test_stdout_is_the_protocols_alone_and_its_end_ends_the_server(served: Septet) -> None:
    """Each line of stdout is an answer, whatever is logged; when stdin ends, the server ends with exit code 0."""
    with started(served) as process:
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(3)]
        out, err = process.communicate(timeout=WITHIN_SECONDS)
    answers = {line["id"]: line["result"] for line in lines}
    assert set(answers) == {1, 2, 3}
    assert answers[1]["serverInfo"]["name"] == "septet"
    assert answers[1]["instructions"]
    assert answers[3]["structuredContent"]["ok"] is True
    assert (process.returncode, out) == (0, ""), err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_the_server_at_once(served: Septet, number: signal.Signals) -> None:
    """The server does not wait for a line on stdin."""
    with started(served) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(number)
        assert process.wait(WITHIN_SECONDS) in {-number, 0}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_tools_are_the_same_over_http(served: Septet, done: dict[str, Any], mode: str) -> None:
    """With the API's token the tools are listed, return the commands' objects, and return mistakes as results."""
    with served.api as api:
        address, token = f"{api.base_url}/mcp", api.headers["authorization"]
    async with httpx2.AsyncClient(
        headers={"Authorization": token}, trust_env=False, timeout=WITHIN_SECONDS
    ) as http:
        async with Client(streamable_http_client(address, http_client=http), mode=mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            detail = await client.call_tool("task_detail", {"id": done["id"]})
            assert checked(tools["task_detail"], detail) == served("show", done["id"], "--json").json
            refused = await client.call_tool("task_detail", {"id": "wo-nobody"})
            assert refused.is_error
            assert checked(tools["task_detail"], refused)["error"]["type"] == "NotFound"


def test_tasks_are_the_same_over_http(served: Septet, done: dict[str, Any]) -> None:
    """A request that declares the extension gets a work order as a task, without a session."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": WITH_TASKS,
    }
    asked = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tasks/get",
        "params": {"taskId": done["id"], "_meta": meta},
    }
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": "tasks/get",
        "Mcp-Name": done["id"],
    }
    with served.api as api:
        task = api.post("/mcp", json=asked, headers=headers).json()["result"]
    assert (task["resultType"], task["status"]) == ("complete", "completed")
    assert task["result"]["structuredContent"]["task"] == done
