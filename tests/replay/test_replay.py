import json
from pathlib import Path

import pytest
from fakes.histories import TOLD
from fakes.swapped_work_order import SwappedWorkOrder
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from workflows.work_order import WorkOrder

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json"))
ENDS = {
    "agent-missing": "FAILED",
    "cancelled": "CANCELED",
    "cancelled-without-worker": "CANCELED",
    "invalid-input": "FAILED",
    "no-plan": "FAILED",
    "refused": "FAILED",
    "waits-for-host": "CANCELED",
}
"""How the work orders end that are not completed."""


def history(path: Path) -> WorkflowHistory:
    return WorkflowHistory.from_json(f"wo-{path.stem}", path.read_text(encoding="utf-8"))


def events(path: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(path.read_text(encoding="utf-8"))["events"]
    return found


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_every_recorded_history_replays(path: Path) -> None:
    """A work order that was begun by an earlier version goes on under this one: the same commands in the same order."""
    await Replayer(workflows=[WorkOrder], data_converter=pydantic_data_converter).replay_workflow(history(path))


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_every_recorded_history_ends_as_its_name_says(path: Path) -> None:
    """A history is whole: its last event is the end of a work order."""
    kind = str(events(path)[-1]["eventType"]).removeprefix("EVENT_TYPE_WORKFLOW_EXECUTION_")
    assert kind == ENDS.get(path.stem, "COMPLETED")


def test_every_way_of_a_work_order_is_recorded() -> None:
    """Each way that a work order can go has its recorded history; `make histories` records those that are missing."""
    assert set(TOLD) <= {path.stem for path in HISTORIES}


def test_the_retried_work_order_was_reset() -> None:
    """The history of the retry holds the steps of the run before it, and the point where it was taken up again."""
    (path,) = [path for path in HISTORIES if path.stem == "retried"]
    causes = [event.get("workflowTaskFailedEventAttributes", {}) for event in events(path)]
    assert "WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW" in {cause.get("cause") for cause in causes}  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["completed", "refused", "retried", "cancelled"])
async def test_a_change_of_the_order_of_steps_does_not_replay(name: str) -> None:
    """A work order with two steps swapped is found out: what passes above passes for a reason."""
    (path,) = [path for path in HISTORIES if path.stem == name]
    replayer = Replayer(workflows=[SwappedWorkOrder], data_converter=pydantic_data_converter)
    with pytest.raises(NondeterminismError):
        await replayer.replay_workflow(history(path))
