"""`septet mcp` for clients of the revision 2026-07-28: no handshake, and work orders as tasks of its extension."""

import itertools
from typing import Any

import pytest
from fakes.mcp_lines import TASKS, VERSION, WITH_TASKS, mcp_lines
from fakes.repositories import Origin
from fakes.septet_command import Septet
from mcp.types import INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_REQUIRED_CLIENT_CAPABILITY

pytestmark = pytest.mark.faces

ALWAYS = {"taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"}
METHODS: dict[str, dict[str, Any]] = {
    "tasks/get": {},
    "tasks/update": {"inputResponses": {}},
    "tasks/cancel": {},
}


def issue(origin: Origin, order: str, **more: Any) -> dict[str, Any]:
    return {"repository": str(origin.bare), "title": "Say goodbye too", "id": order, **more}


def answered(decision: str, feedback: str = "") -> dict[str, Any]:
    return {"action": "accept", "content": {"decision": decision, "feedback": feedback}}


def question_of(task: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    assert task["status"] == "input_required", task
    ((key, asked),) = task["inputRequests"].items()
    assert (asked["method"], asked["params"]["mode"]) == ("elicitation/create", "form")
    return key, asked["params"]


def test_first_request_needs_no_handshake(served: Septet) -> None:
    """`server/discover` returns versions, tools and the extension; any other first request works too."""
    with mcp_lines(served, WITH_TASKS) as client:
        told = client.ask("server/discover")
        assert told["resultType"] == "complete"
        assert VERSION in told["supportedVersions"]
        assert told["capabilities"]["extensions"] == {TASKS: {}}
        assert "tools" in told["capabilities"]
        assert told["instructions"]
        assert client.refused("initialize")["data"]["supported"] == [VERSION]
    with mcp_lines(served) as client:
        listed = client.ask("tools/list")
        assert listed["resultType"] == "complete"
        assert "run" in {tool["name"] for tool in listed["tools"]}
        client.version = "1999-01-01"
        assert VERSION in client.refused("tools/list")["data"]["supported"]


def test_work_order_is_a_task_from_the_call_to_its_result(served: Septet, origin: Origin) -> None:
    """The call returns at once; the task requests the plan's approval, and ends with the tool's result."""
    with mcp_lines(served, WITH_TASKS) as client:
        created = client.call("run", **issue(origin, "wo-task", approve_plan=True))
        assert created.keys() - {"_meta"} == ALWAYS | {"resultType"}
        assert (created["resultType"], created["taskId"], created["status"]) == ("task", "wo-task", "working")
        key, form = question_of(client.task_in("wo-task", "input_required", "failed"))
        assert "wo-task" in form["message"]
        assert "goodbye" in form["message"]  # the plan itself
        assert form["requestedSchema"]["properties"]["decision"]["enum"] == ["approve", "reject"]
        assert client.task("wo-task")["inputRequests"].keys() == {key}
        done = client.ask("tasks/update", taskId="wo-task", inputResponses={key: answered("approve")})
        assert done.keys() - {"_meta"} == {"resultType"}
    with mcp_lines(served, WITH_TASKS) as client:  # no process keeps a task's state
        task = client.task_in("wo-task", "completed", "failed")
        assert task.keys() - {"_meta"} == ALWAYS | {"resultType", "result"}
        assert task["resultType"] == "complete"
        assert task["result"]["structuredContent"] == {
            "ok": True,
            "task": served("show", "wo-task", "--json").json["task"],
        }
        assert task["result"]["isError"] is False
    history = served("show", "wo-task", "--json").json["history"]
    assert [move["who"] for move in history if "approved" in move["why"]] == ["a-test"]


def test_each_question_has_a_key_of_its_own(served: Septet, origin: Origin) -> None:
    """Feedback starts a new plan; an answer to the earlier plan, or to an unknown key, changes nothing."""
    with mcp_lines(served, WITH_TASKS) as client:
        client.call("run", **issue(origin, "wo-task-again", approve_plan=True))
        first, _ = question_of(client.task_in("wo-task-again", "input_required", "failed"))
        unclear = client.refused(
            "tasks/update", taskId="wo-task-again", inputResponses={first: answered("reject")}
        )
        assert unclear["code"] == INVALID_PARAMS
        assert "feedback" in unclear["message"]
        for nothing in ({first: {"action": "decline"}}, {"nobody": answered("approve")}):
            client.ask("tasks/update", taskId="wo-task-again", inputResponses=nothing)
            assert question_of(client.task("wo-task-again"))[0] == first
        client.ask(
            "tasks/update", taskId="wo-task-again", inputResponses={first: answered("reject", "In French.")}
        )
        second, _ = question_of(client.task_in("wo-task-again", "input_required", "failed"))
        assert second != first
        client.ask("tasks/update", taskId="wo-task-again", inputResponses={first: answered("approve")})
        assert question_of(client.task("wo-task-again"))[0] == second
        client.ask("tasks/cancel", taskId="wo-task-again")
        assert "result" not in client.task_in("wo-task-again", "cancelled")
        cancelled_again = client.ask("tasks/cancel", taskId="wo-task-again")
        assert cancelled_again["resultType"] == "complete"


def test_task_asks_for_more_when_its_budget_is_used_up(served: Septet, origin: Origin) -> None:
    """The answer is the amount to add; a wrong amount is refused, and a repeated answer adds nothing."""
    order = served.scenario("wo-task-budget", {"cost_usd": 0.01})
    with mcp_lines(served, WITH_TASKS) as client:
        client.call("run", **issue(origin, order, budget="0.01usd"))
        key, form = question_of(client.task_in(order, "input_required", "failed"))
        assert f"The budget of the work order {order} is used up" in form["message"]
        assert form["requestedSchema"]["required"] == ["amount"]

        def answer(amount: str) -> dict[str, Any]:
            return {key: {"action": "accept", "content": {"amount": amount}}}

        unclear = client.refused("tasks/update", taskId=order, inputResponses=answer("much"))
        assert (unclear["code"], "such as 5usd" in unclear["message"]) == (INVALID_PARAMS, True), unclear
        client.ask("tasks/update", taskId=order, inputResponses={key: {"action": "decline"}})
        assert question_of(client.task(order))[0] == key
        for _ in range(2):
            client.ask("tasks/update", taskId=order, inputResponses=answer("5usd"))
        client.task_in(order, "working")
        client.ask("tasks/cancel", taskId=order)
    assert served("budget", "show", order, "--json").json["budget"]["limit"] == "5.01usd"


def test_client_without_forms_is_told_whom_the_task_waits_for(served: Septet, origin: Origin) -> None:
    """The client gets no form: the status names the command, and the `approve` tool continues the task."""
    with mcp_lines(served, {"extensions": {TASKS: {}}}) as client:
        client.call("run", **issue(origin, "wo-task-formless", approve_plan=True))
        waiting = client.call("wait", id="wo-task-formless", seconds=50)
        assert waiting["structuredContent"]["task"]["status"] == "waiting"
        task = client.task("wo-task-formless")
        assert (task["status"], "inputRequests" in task) == ("working", False)
        assert "septet approve wo-task-formless" in task["statusMessage"]
        client.call("approve", id="wo-task-formless")
    assert "the plan is approved" in [
        move["why"] for move in served("show", "wo-task-formless", "--json").json["history"]
    ]
    served.cancelled("wo-task-formless")


def test_failed_work_order_is_a_failed_task_that_a_retry_resumes(served: Septet, origin: Origin) -> None:
    """The task's error has type, message and remedy; the retry returns the same task, which works again."""
    refused = {"steps": {"implement_plan": [{"api_error": "authentication_failed"}]}}
    order = served.scenario("wo-task-fails", refused)
    with mcp_lines(served, WITH_TASKS) as client:
        client.call("run", **issue(origin, order))
        task = client.task_in(order, "failed", "completed")
        assert task["status"] == "failed", task
        told = served("show", order, "--json").json["task"]["error"]
        assert task["error"]["data"] == told
        assert told["remedy"] in task["error"]["message"]
        served.scenario(order, {})
        again = client.call("retry", id=order)
        assert (again["resultType"], again["taskId"]) == ("task", order)
        client.task_in(order, "working")
        client.ask("tasks/cancel", taskId=order)


def test_client_without_the_extension_is_sent_no_task(served: Septet, origin: Origin) -> None:
    """The call returns the tool's own result, and the methods of tasks name the missing capability."""
    with mcp_lines(served) as client:
        begun = client.call("run", **issue(origin, "wo-task-plain"))
        assert begun["resultType"] == "complete"
        assert begun["structuredContent"]["task"]["id"] == "wo-task-plain"
        for method, more in METHODS.items():
            error = client.refused(method, taskId="wo-task-plain", **more)
            assert error["code"] == MISSING_REQUIRED_CLIENT_CAPABILITY
            assert error["data"] == {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        client.call("cancel", id="wo-task-plain")


def test_mistakes_with_tasks_are_told(served: Septet) -> None:
    """An unknown task is an invalid parameter; a tool's refusal is the tool's error result, and no task."""
    with mcp_lines(served, WITH_TASKS) as client:
        for method, more in METHODS.items():
            error = client.refused(method, taskId="wo-nobody", **more)
            assert error["code"] == INVALID_PARAMS
            assert "wo-nobody" in error["message"]
            assert error["data"]["type"] == "NotFound"
            assert client.refused(method)["code"] == INVALID_PARAMS
        refused = client.call("run", repository=".", title="")
        assert (refused["resultType"], refused["isError"]) == ("complete", True)


def test_old_client_sees_no_difference(served: Septet, origin: Origin) -> None:
    """After the handshake a declared extension changes nothing: no task, no method of tasks, no new field."""
    with mcp_lines(served) as client:
        begun = client.send(
            "initialize",
            protocolVersion="2025-11-25",
            capabilities=dict(WITH_TASKS),
            clientInfo={"name": "old", "version": "1"},
        )["result"]
        assert begun.keys() == {"protocolVersion", "capabilities", "serverInfo", "instructions"}
        assert begun["capabilities"] == {"tools": {"listChanged": False}}
        answer = client.send("tools/call", name="run", arguments=issue(origin, "wo-task-old"))["result"]
        assert answer.keys() == {"content", "structuredContent", "isError"}
        for method, params in itertools.product(METHODS, ({}, {"taskId": "wo-task-old", "inputResponses": {}})):
            error = client.send(method, **params)["error"]
            assert error == {"code": METHOD_NOT_FOUND, "message": "Method not found", "data": method}
        client.send("tools/call", name="cancel", arguments={"id": "wo-task-old"})
