"""MCP's Tasks extension: a call that starts a work order returns a task at once, and the client polls the task."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ClientCapabilities,
    DiscoverResult,
    RequestParams,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field, JsonValue

from clients.error_reply import error_reply
from clients.mcp.input_requests import decide, input_requests
from clients.mcp.tools import tool_result
from clients.operations.operations import Operations, OperationsContext
from septet.contracts.names import Status, Step
from septet.contracts.replies import DetailReply, TaskReply
from septet.contracts.task import TaskError
from septet.errors import (
    InvalidInputError,
    NotFoundError,
    RefusedTransitionError,
    SeptetError,
    ServerNotReachedError,
)
from septet.system.masking import mask_json

_POLL_MS: Final = 5000
"""The pause between polls of a client, in milliseconds: a step takes minutes."""

Json = dict[str, JsonValue]


def created_task(reply: TaskReply) -> Json:
    """Return a started work order as an MCP task, which the client polls."""
    return _mask_values({"resultType": "task", **_envelope(DetailReply(task=reply.task), "working")})


def detailed_task(detail: DetailReply, asks: Json) -> Json:
    """Return a work order as an MCP task, with the work order's question, result or error."""
    task = detail.task
    match task.status:
        case Status.COMPLETED:
            result = tool_result(TaskReply(task=task)).model_dump(by_alias=True, mode="json", exclude_none=True)
            shown = {**_envelope(detail, "completed"), "result": result}
        case Status.FAILED:
            error = task.error or TaskError(type="StepFailed", message="It failed.")
            shown = {**_envelope(detail, "failed"), "error": json_rpc_error(error, INTERNAL_ERROR)}
        case Status.CANCELLED:
            shown = _envelope(detail, "cancelled")
        case _ if asks:
            shown = {**_envelope(detail, "input_required"), "inputRequests": asks}
        case _:
            shown = _envelope(detail, "working")
    return _mask_values(shown)


def json_rpc_error(error: TaskError, code: int) -> dict[str, Any]:
    """Return one of Septet's errors as a JSON-RPC error, whose data has type, message and remedy."""
    data: dict[str, Any] = json.loads(mask_json(error.model_dump_json().encode()))
    return {"code": code, "message": f"{data['message']} {data['remedy']}".strip(), "data": data}


def _envelope(detail: DetailReply, status: str) -> Json:
    task = detail.task
    done = len({step.step for step in task.steps if step.success})
    message = task.stuck or detail.waiting_for or f"{done} of {len(Step)} steps are done."
    if task.error is not None:
        message = f"{task.error.message} {task.error.remedy}".strip()
    elif task.is_closed:
        message = task.pr_url or (detail.history[-1].why if detail.history else "")
    return {
        "taskId": task.id,
        "status": status,
        "statusMessage": message,
        "createdAt": task.created_at,
        "lastUpdatedAt": task.updated_at,
        "ttlMs": None,
        "pollIntervalMs": _POLL_MS,
    }


def _mask_values(value: Json) -> Json:
    masked: Json = json.loads(mask_json(json.dumps(value).encode()))
    return masked


EXTENSION: Final = "io.modelcontextprotocol/tasks"
_NAME_LENGTH: Final = 200
_TASK_TOOLS: Final = frozenset({"run", "retry"})
"""The tools that start work, which continues after the tool's answer."""
_MISTAKES: Final = (NotFoundError, InvalidInputError, RefusedTransitionError)

Context = ServerRequestContext[Any, Any]


class TaskParams(RequestParams):
    """The parameters that name a task; a task has the id of its work order."""

    task_id: Annotated[str, Field(max_length=_NAME_LENGTH)]


class UpdateParams(TaskParams):
    """The parameters that name a task and answer the task's question."""

    input_responses: Annotated[dict[str, dict[str, Any]], Field(max_length=10)]


Params = TypeVar("Params", bound=TaskParams)


@dataclass(frozen=True, slots=True)
class TaskMethods:
    """The methods of MCP's Tasks extension, for clients that declare the extension."""

    connect: OperationsContext
    server: Server[Any]

    def register(self) -> None:
        """Add the methods to the server, and announce the extension; older clients see no difference."""
        self.server.add_request_handler("server/discover", RequestParams, self.discover)
        self.server.add_request_handler("tasks/get", RequestParams, self.get)
        self.server.add_request_handler("tasks/update", RequestParams, self.update)
        self.server.add_request_handler("tasks/cancel", RequestParams, self.cancel)

    async def discover(self, context: Context, params: RequestParams) -> DiscoverResult:
        """Return the server's protocol versions, capabilities and instructions."""
        del params
        version = context.protocol_version
        return DiscoverResult(
            supported_versions=list(MODERN_PROTOCOL_VERSIONS),
            capabilities=self.server.get_capabilities(extensions={EXTENSION: {}}, protocol_version=version),
            instructions=self.server.instructions,
        )

    async def get(self, context: Context, _: RequestParams) -> Json:
        """Return a task as it is now; without a worker's answer, the task's question is missing."""
        params = _read(TaskParams, context)
        asks: Json = {}
        async with self._operations() as operations:
            detail = await operations.reading.detail(params.task_id)
            capabilities = context.session.client_capabilities
            forms = capabilities.elicitation if capabilities is not None else None
            # An elicitation capability without a mode means forms.
            if forms is not None and (forms.form is not None or forms.url is None):
                with suppress(ServerNotReachedError):
                    asks = await input_requests(operations, detail)
            return detailed_task(detail, asks)

    async def update(self, context: Context, _: RequestParams) -> Json:
        """Carry out the answers of a person; answers to old questions change nothing.

        Raises:
            MCPError: No worker reports the question now; the client can send the answers again.
        """
        params = _read(UpdateParams, context)
        async with self._operations() as operations:
            detail = await operations.reading.detail(params.task_id)
            asked = await input_requests(operations, detail)
            for key in asked.keys() & params.input_responses.keys():
                with suppress(RefusedTransitionError):  # somebody else was faster
                    await decide(operations, detail.task, params.input_responses[key], client_name(context))
        return {}

    async def cancel(self, context: Context, _: RequestParams) -> Json:
        """Cancel a task; a closed task does not change."""
        params = _read(TaskParams, context)
        async with self._operations() as operations:
            with suppress(RefusedTransitionError):
                await operations.decisions.cancel(params.task_id, client_name(context))
        return {}

    @asynccontextmanager
    async def _operations(self) -> AsyncIterator[Operations]:
        """Yield the operations; turn Septet's errors into errors of MCP."""
        try:
            async with self.connect() as operations:
                yield operations
        except (SeptetError, OSError) as error:
            code = INVALID_PARAMS if isinstance(error, _MISTAKES) else INTERNAL_ERROR
            raise MCPError(**json_rpc_error(error_reply(error).error, code)) from error


def _read(kind: type[Params], context: Context) -> Params:
    """Return a request's parameters; refuse the request if the client has not declared the extension."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(METHOD_NOT_FOUND, "Method not found", context.method)
    if not _declares_tasks(context):
        needed = ClientCapabilities(extensions={EXTENSION: {}}).model_dump(by_alias=True, exclude_none=True)
        message = f"{context.method} is for clients that declare the extension {EXTENSION}."
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, message, {"requiredCapabilities": needed})
    return kind.model_validate(context.params or {}, by_name=False)


def becomes_task(tool: str, context: Context) -> bool:
    """Return whether a call of `tool` is answered with a task that the client polls."""
    is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    return tool in _TASK_TOOLS and is_modern and _declares_tasks(context)


def client_name(context: Context) -> str:
    """Return the name of the client's program, as the history shows it."""
    client = context.session.client_params
    return client.client_info.name[:_NAME_LENGTH] if client is not None else "mcp"


def _declares_tasks(context: Context) -> bool:
    capabilities = context.session.client_capabilities
    return capabilities is not None and EXTENSION in (capabilities.extensions or {})
