import json
from typing import Any

from fakes.repositories import Origin
from fakes.septet_command import Ended, Septet
from fakes.waiting import until_temporal

from septet.contracts.names import Step
from septet.state import StateDir


def start(served: Septet, order: str, *inputs: str) -> Ended:
    """Start a work order as Temporal's own documentation does."""
    named = ("--task-queue", "septet", "--type", "WorkOrder", "--workflow-id", order)
    return served.temporal("workflow", "start", *named, *(part for text in inputs for part in ("--input", text)))


def described(served: Septet, order: str) -> dict[str, Any]:
    """Return the server's description of a workflow, once the workflow is closed."""

    def closed() -> dict[str, Any] | None:
        found = json.loads(served.temporal("workflow", "describe", "-w", order, "-o", "json").out)
        return None if found["workflowExecutionInfo"]["status"].endswith("RUNNING") else found

    return until_temporal(closed)


def test_temporals_own_command_line_starts_the_same_work_order(served: Septet, origin: Origin) -> None:
    """`temporal workflow start` needs only a JSON object; the server then has the whole story."""
    served("issue", "add", "--repo", origin.bare, "--title", "The greeting is wrong", "--json")
    assert start(served, "wo-42", json.dumps({"repository": str(origin.bare), "issue": 1})).code == 0
    info = described(served, "wo-42")["workflowExecutionInfo"]
    assert info["status"] == "WORKFLOW_EXECUTION_STATUS_COMPLETED"

    task = served("show", "wo-42", "--json").json["task"]
    assert (task["status"], task["issue_number"]) == ("completed", "1")
    assert origin.sha(task["branch_name"]) == task["commit_sha"]

    fields = info["searchAttributes"]["indexedFields"]
    found = {name: value for name, value in fields.items() if name.startswith("Septet")}
    assert {name: _plain(value) for name, value in found.items()} == {
        "SeptetStatus": "completed",
        "SeptetStage": "review",
        "SeptetProject": "app",
        "SeptetRepository": str(origin.bare),
        "SeptetIssue": "1",
        "SeptetPriority": 3,
        "SeptetAgent": "scripted",
        "SeptetPullRequest": task["pr_url"],
        "SeptetHost": StateDir(served.state).host_id(),
    }
    query = f'SeptetStage="review" AND SeptetRepository="{origin.bare}"'
    until_temporal(lambda: "wo-42" in served.temporal("workflow", "list", "--query", query).out)

    details = served.temporal("workflow", "metadata", "-w", "wo-42", "-o", "json").out
    assert all(step.value in details for step in Step)
    assert task["pr_url"] in details
    history = served.temporal("workflow", "show", "-w", "wo-42", "-o", "json").out
    assert "classifier · scripted" in _summaries(history)


def _plain(payload: Any) -> Any:
    """Return a search attribute's value from either of its two printed forms."""
    import base64

    return json.loads(base64.b64decode(payload["data"])) if isinstance(payload, dict) else payload


def _summaries(history: str) -> set[str]:
    events = json.loads(history)["events"]
    found = [event["userMetadata"]["summary"] for event in events if "summary" in event.get("userMetadata", {})]
    return {_plain(summary) for summary in found}
