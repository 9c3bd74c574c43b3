"""A work order in the shape of the Tasks extension, revision 2026-07-28."""

import json
from typing import Any, Final

from mcp.types import INTERNAL_ERROR
from pydantic import JsonValue

from clients.mcp.tools import tool_result
from septet.contracts.names import Status, Step
from septet.contracts.replies import DetailReply, TaskReply
from septet.contracts.task import TaskError
from septet.system.masking import mask_json

_POLL_MS: Final = 5000
"""A step takes minutes."""

Json = dict[str, JsonValue]


def created_task(reply: TaskReply) -> Json:
    """Return the handle of the work that a call started."""
    return _mask_values({"resultType": "task", **_envelope(DetailReply(task=reply.task), "working")})


def detailed_task(detail: DetailReply, asks: Json) -> Json:
    """Return a work order as it is now, with what it asks the client, its result or its error.

    A failed one is `failed`: what the call was for did not come about, and the error says why and what to do.
    """
    return _mask_values(_detailed(detail, asks))


def json_rpc_error(error: TaskError, code: int) -> dict[str, Any]:
    """Return an error of ours as one of the protocol; its data has type, message and remedy."""
    told: dict[str, Any] = json.loads(mask_json(error.model_dump_json().encode()))
    return {"code": code, "message": f"{told['message']} {told['remedy']}".strip(), "data": told}


def _detailed(detail: DetailReply, asks: Json) -> Json:
    task = detail.task
    match task.status:
        case Status.COMPLETED:
            result = tool_result(TaskReply(task=task)).model_dump(by_alias=True, mode="json", exclude_none=True)
            return {**_envelope(detail, "completed"), "result": result}
        case Status.FAILED:
            error = task.error or TaskError(type="StepFailed", message="It failed.")
            return {**_envelope(detail, "failed"), "error": json_rpc_error(error, INTERNAL_ERROR)}
        case Status.CANCELLED:
            return _envelope(detail, "cancelled")
        case _ if asks:
            return {**_envelope(detail, "input_required"), "inputRequests": asks}
        case _:
            return _envelope(detail, "working")


def _envelope(detail: DetailReply, status: str) -> Json:
    task = detail.task
    return {
        "taskId": task.id,
        "status": status,
        "statusMessage": _status_message(detail),
        "createdAt": task.created_at,
        "lastUpdatedAt": task.updated_at,
        "ttlMs": None,
        "pollIntervalMs": _POLL_MS,
    }


def _status_message(detail: DetailReply) -> str:
    task = detail.task
    if task.error is not None:
        return f"{task.error.message} {task.error.remedy}".strip()
    if task.is_closed:
        return task.pr_url or (detail.history[-1].why if detail.history else "")
    done = len({step.step for step in task.steps if step.success})
    return task.stuck or detail.waiting_for or f"{done} of {len(Step)} steps are done."


def _mask_values(value: Json) -> Json:
    masked: Json = json.loads(mask_json(json.dumps(value).encode()))
    return masked
