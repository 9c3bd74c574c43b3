"""Recorded inputs and answers of activities stay readable by today's models, over two releases."""

import base64
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from fakes.recorded import PATHS, events_of, name_of
from pydantic import BaseModel
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError

from septet.contracts.decisions import MoveReason
from septet.contracts.names import Step
from septet.contracts.order import WorkOrderInput
from septet.contracts.steps import EndCall, FailureFacts, FinalizeCall, StepCall, StepResult
from septet.contracts.task import Task
from septet.contracts.workspace import CancelledWork, MoveWorkspace, OpenWorkspace, Workspace
from septet.pipelines.inputs import PipelineInput
from workflows.wire.inputs import parse_input

_TODAY: Final[dict[str, tuple[type[BaseModel], type[BaseModel]]]] = {
    "open_workspace": (OpenWorkspace, Workspace),
    "move_workspace": (MoveWorkspace, Workspace),
    "cancel_work_order": (MoveReason, MoveReason),
    "deliver_cancel": (CancelledWork, CancelledWork),
    "end_work": (EndCall, StepResult),
    "finalize_json": (FinalizeCall, StepResult),
    **{step.value: (StepCall, StepResult) for step in Step},
}
"""By activity: the models of its input and its answer.

`probe_host` has neither; an activity without an answer has the model of its input twice.
"""


def read(payload: dict[str, Any], model: type[BaseModel]) -> BaseModel:
    """Decode a recorded payload as a worker does."""
    metadata = {key: base64.b64decode(value) for key, value in payload["metadata"].items()}
    wire = Payload(metadata=metadata, data=base64.b64decode(payload["data"]))
    decoded: BaseModel = pydantic_data_converter.payload_converter.from_payload(wire, model)
    return decoded


def payloads(path: Path) -> Iterator[tuple[dict[str, Any], type[BaseModel]]]:
    """Yield each payload of a history that a worker or a client reads, with its model of today."""
    activities: dict[str, str] = {}
    for event in events_of(path):
        if scheduled := event.get("activityTaskScheduledEventAttributes"):
            activities[event["eventId"]] = scheduled["activityType"]["name"]
            for payload in scheduled.get("input", {}).get("payloads", ()):
                yield payload, _TODAY[scheduled["activityType"]["name"]][0]
        elif completed := event.get("activityTaskCompletedEventAttributes"):
            for payload in _said(completed):
                yield payload, _TODAY[activities[completed["scheduledEventId"]]][1]
        elif failed := event.get("activityTaskFailedEventAttributes"):
            for payload in failed["failure"]["applicationFailureInfo"].get("details", {}).get("payloads", ()):
                yield payload, FailureFacts
        elif closed := event.get("workflowExecutionCompletedEventAttributes"):
            for payload in closed["result"]["payloads"]:
                yield payload, Task


def _said(completed: dict[str, Any]) -> Sequence[dict[str, Any]]:
    """Return the payloads of an activity that answered more than `null`."""
    return [payload for payload in completed["result"]["payloads"] if payload.get("data")]


@pytest.mark.parametrize("path", PATHS, ids=name_of)
def test_every_recorded_payload_is_read_by_the_models_of_today(path: Path) -> None:
    """An earlier version's inputs and answers mean the same to this version: no field is lost."""
    for payload, model in payloads(path):
        told = json.loads(base64.b64decode(payload["data"]))
        now = json.loads(read(payload, model).model_dump_json(by_alias=True))
        assert _within(told, now), (
            f"{name_of(path)}: {model.__name__} lost or changed a field: {told} is now {now}"
        )


def _first_payload() -> tuple[dict[str, Any], type[BaseModel]]:
    path = next(path for path in PATHS if path.stem == "completed")
    return next(payloads(path))


def _with_field(payload: dict[str, Any]) -> dict[str, Any]:
    given = {**json.loads(base64.b64decode(payload["data"])), "colour": "red"}
    return {**payload, "data": base64.b64encode(json.dumps(given).encode()).decode()}


def test_a_field_that_was_taken_away_is_found_out() -> None:
    """A payload loses a field that today's model does not know: so the test above can fail."""
    payload, model = _first_payload()
    payload = _with_field(payload)
    assert not _within(
        json.loads(base64.b64decode(payload["data"])), json.loads(read(payload, model).model_dump_json())
    )


def test_a_field_that_a_later_release_has_added_is_ignored() -> None:
    """An older worker reads a newer worker's inputs and answers, and ignores new fields, also in nested values."""
    payload, model = _first_payload()
    assert read(_with_field(payload), model) == read(payload, model)
    call = StepCall.model_validate_json(
        b'{"step": "implement_plan", "colour": "red", "limits": {"wall_seconds": 5, "colour": "red"}, "workspace":'
        b'{"work_order_id": "wo-1", "host": "h", "task_queue": "q", "repository": "r", "forge": "local", "project": "p",'
        b'"base_branch": "main", "base_sha": "0", "path": "/w", "agent": "scripted", "colour": "red"}}'
    )
    assert call.limits.wall_seconds == 5


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (WorkOrderInput, {"repository": "/app", "title": "T", "colour": "red"}),
        (WorkOrderInput, {"repository": "/app", "title": "T", "timeouts": {"colour": "red"}}),
        (WorkOrderInput, {"repository": "/app", "title": "T", "steps": {"build_plan": {"colour": "red"}}}),
        (PipelineInput, {"repository": "/app", "issues": [{"id": "A", "title": "T", "colour": "red"}]}),
    ],
)
def test_what_people_give_is_read_strictly(model: type[BaseModel], given: dict[str, object]) -> None:
    """An unknown field in a person's input is a mistake, also in a nested value; a workflow's input may have it."""
    raw = RawValue(Payload(data=json.dumps(given).encode()))
    with pytest.raises(ApplicationError, match="colour is not a known field"):
        parse_input("wo-1", (raw,), model)
    assert type(parse_input("wo-1", (raw,), model, by_workflow=True)) is model


def _within(told: Any, now: Any) -> bool:
    """Say whether all recorded values are still present; new fields are allowed."""
    if isinstance(told, dict) and isinstance(now, dict):
        return all(key in now and _within(value, now[key]) for key, value in told.items())
    if isinstance(told, list) and isinstance(now, list):
        return len(told) == len(now) and all(map(_within, told, now))
    return bool(told == now)
