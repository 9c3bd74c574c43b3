"""What activities were given and have answered stays readable: two releases back, and by the models of today."""

import base64
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from fakes.recorded import PATHS, events_of, name_of
from pydantic import BaseModel, ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import pydantic_data_converter

from septet.contracts.decisions import MoveCall
from septet.contracts.names import Step
from septet.contracts.steps import FailureFacts, FinalizeCall, StepCall, StepResult
from septet.contracts.task import Task
from septet.contracts.workspace import MoveWorkspace, OpenWorkspace, Workspace

_TODAY: Final[dict[str, tuple[type[BaseModel], type[BaseModel]]]] = {
    "open_workspace": (OpenWorkspace, Workspace),
    "move_workspace": (MoveWorkspace, Workspace),
    "cancel_work_order": (MoveCall, MoveCall),
    "end_work": (StepCall, StepResult),
    "finalize_json": (FinalizeCall, StepResult),
    **{step.value: (StepCall, StepResult) for step in Step},
}
"""By activity: what it takes and what it answers. `probe_host` does neither, `cancel_work_order` answers nothing."""


def read(payload: dict[str, Any], model: type[BaseModel]) -> BaseModel:
    """Decode a recorded payload as a worker does."""
    metadata = {key: base64.b64decode(value) for key, value in payload["metadata"].items()}
    wire = Payload(metadata=metadata, data=base64.b64decode(payload["data"]))
    decoded: BaseModel = pydantic_data_converter.payload_converter.from_payload(wire, model)
    return decoded


def payloads(path: Path) -> Iterator[tuple[dict[str, Any], type[BaseModel]]]:
    """Return each payload of a history that a worker or a client reads, with its model of today."""
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
    """What a worker of an earlier version was given or answered means the same to this one: no field is lost."""
    for payload, model in payloads(path):
        told = json.loads(base64.b64decode(payload["data"]))
        now = json.loads(read(payload, model).model_dump_json(by_alias=True))
        assert _within(told, now), (
            f"{name_of(path)}: {model.__name__} lost or changed a field: {told} is now {now}"
        )


def test_a_field_that_was_taken_away_is_found_out() -> None:
    """A payload with a field that today's model does not know is refused: what passes above passes for a reason."""
    (path,) = [path for path in PATHS if name_of(path) == "0.1.0.dev1/completed"]
    payload, model = next(payloads(path))
    told = {**json.loads(base64.b64decode(payload["data"])), "colour": "red"}
    with pytest.raises(ValidationError, match="colour"):
        read({**payload, "data": base64.b64encode(json.dumps(told).encode()).decode()}, model)


def _within(told: Any, now: Any) -> bool:
    """Say whether everything that was told is still there; new fields may be beside it."""
    if isinstance(told, dict) and isinstance(now, dict):
        return all(key in now and _within(value, now[key]) for key, value in told.items())
    if isinstance(told, list) and isinstance(now, list):
        return len(told) == len(now) and all(map(_within, told, now))
    return bool(told == now)
