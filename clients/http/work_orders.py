"""The HTTP routes that are not made from operations, because their bodies or answers have their own schemas."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, Field
from temporalio.service import RPCError

from clients.disk.workspace_view import CommitCount, count_commits
from clients.http.answers import (
    AgentWorkOrder,
    GitProgress,
    LogPage,
    NetworkPage,
    StepHistory,
    agent_work_order,
    git_progress,
)
from clients.http.bodies import (
    MOST_AT_ONCE,
    CancelJson,
    Connected,
    IdempotencyKey,
    Limit,
    NewPipelineJson,
    NewWorkOrderJson,
    OrderId,
    PromptJson,
    json_alone,
)
from clients.http.problems import Problem, problems, problems_of_a_body
from clients.operations.operations import Operations
from clients.operations.reading import ENTRIES_AT_ONCE, REQUESTS_AT_ONCE
from clients.temporal.deliveries import tell_watches
from clients.temporal.work_orders import OrderFilter
from septet.contracts.names import LOCAL_PULL, Stage, Status
from septet.contracts.replies import RescuesReply, TaskReply
from septet.contracts.task import Task
from septet.errors import RefusedTransitionError
from septet.forges.local.forge import LocalForge
from septet.pipelines.views import PipelineReply

_READS_AFTER_MERGE: Final = 25
"""The most times that `merge` checks whether the board shows the merge."""


async def merge_here(operations: Operations, order_id: str) -> TaskReply:
    """Merge the pull request of a work order, and return the work order.

    Raises:
        RefusedTransitionError: The pull request is not of a repository on this machine.
        ForgeError: The pull request is no longer open, or conflicts with its base.
    """
    orders = operations.orders
    task = await orders.get(order_id)
    pull = LOCAL_PULL.fullmatch(task.pr_url or "")
    if pull is None:
        where = f"its pull request is {task.pr_url}" if task.pr_url else "it has no pull request yet"
        remedy = "Merge it on its own forge." if task.pr_url else "Wait for its last step."
        raise RefusedTransitionError(f"{order_id} cannot be merged here: {where}.", remedy=remedy)
    forge = LocalForge(Path(unquote(pull["path"])), operations.git_env)
    merged = await asyncio.to_thread(forge.merge_pull_request, int(pull["number"]))
    with suppress(RPCError):  # the watch polls the pull request anyway
        await tell_watches(operations.client, merged.url)
    for _ in range(_READS_AFTER_MERGE):
        if (task := await orders.get(order_id)).stage is not Stage.REVIEW:
            break
        await asyncio.sleep(0.2)
    return TaskReply(task=task)


MOST_HOURS: Final = 100_000
_ORDERS: Final = "/agent-work-orders"
_ORDER: Final = f"{_ORDERS}/{{order_id}}"
router = APIRouter()
Everything = Annotated[bool, Query(alias="all", description="The checkpoints too.")]
_READS: Final[dict[str, Any]] = {
    "tags": ["work orders"],
    "responses": problems(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY),
}
_OF_RESCUES: Final[dict[str, Any]] = {"tags": ["board"], "responses": problems(HTTPStatus.UNPROCESSABLE_ENTITY)}
_DECIDES: Final[dict[str, Any]] = {
    "dependencies": [Depends(json_alone)],
    "responses": problems_of_a_body()
    | problems(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY),
}


class ListFilter(BaseModel):
    """The filter and the page of a list of work orders."""

    status: Status | None = None
    agent: Annotated[str, Field(max_length=200, description="Only those of this agent.")] = ""
    repository: Annotated[
        str, Field(max_length=2048, description="Only those of this repository: its address, path or project.")
    ] = ""
    within_hours: Annotated[
        float | None, Field(gt=0, le=MOST_HOURS, description="Only those that were started in the last hours.")
    ] = None
    limit: int = Field(100, ge=1, le=MOST_AT_ONCE)
    after: Annotated[str, Field(description="Where the previous page ended, from its `Link` header.")] = ""


_LINK = {"Link": {"description": 'The next page, `rel="next"`, where there is one.', "schema": {"type": "string"}}}


def _creates(tag: str, noun: str) -> dict[str, Any]:
    """Return FastAPI's arguments for a route that starts a work order or a pipeline."""
    location = {"Location": {"description": f"The {noun}'s path.", "schema": {"type": "string"}}}
    responses = {**_DECIDES["responses"], HTTPStatus.CREATED: {"headers": location}}
    return {**_DECIDES, "tags": [tag], "status_code": HTTPStatus.CREATED, "responses": responses}


@router.post(_ORDERS, **_creates("work orders", "work order"))
async def create_work_order(
    new: NewWorkOrderJson, operations: Connected, response: Response, idempotency_key: IdempotencyKey = ""
) -> AgentWorkOrder:
    """Start a work order; its stage says whether it waits on the board first."""
    reply = await operations.starting.start(new.order(), new.id, key=idempotency_key, again=new.again)
    response.headers["Location"] = f"{_ORDERS}/{reply.task.id}"
    whole = agent_work_order(reply.task, await _commits_of(operations, reply.task))
    return whole.model_copy(update={"estimate": reply.estimate})


@router.get(_ORDERS, **{**_READS, "responses": {**_READS["responses"], HTTPStatus.OK: {"headers": _LINK}}})
async def list_work_orders(
    operations: Connected, which: Annotated[ListFilter, Query()], request: Request, response: Response
) -> list[AgentWorkOrder]:
    """List work orders, open ones first, newest first, from search attributes alone."""
    wanted = OrderFilter(
        status=which.status,
        agent=which.agent,
        repository=which.repository,
        within=timedelta(hours=which.within_hours) if which.within_hours is not None else None,
    )
    page = await operations.orders.list(wanted, limit=which.limit, after=which.after)
    if page.next is not None:
        following = request.url.include_query_params(limit=which.limit, after=page.next)
        response.headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'
    return [agent_work_order(task) for task in page.tasks]


@router.get(_ORDER, **_READS)
async def get_work_order(order_id: OrderId, operations: Connected) -> AgentWorkOrder:
    """Show one work order."""
    task = await operations.orders.get(order_id)
    return agent_work_order(task, await _commits_of(operations, task))


@router.get(f"{_ORDER}/steps", **_READS)
async def get_steps(order_id: OrderId, operations: Connected) -> StepHistory:
    """Show the finished steps."""
    reply = await operations.reading.steps(order_id)
    return StepHistory(**dict(reply), agent_work_order_id=order_id)


@router.get(f"{_ORDER}/git-progress", **_READS)
async def get_git_progress(order_id: OrderId, operations: Connected) -> GitProgress:
    """Show the progress of a work order in git."""
    task = await operations.orders.get(order_id)
    return git_progress(task, await _commits_of(operations, task))


@router.get(f"{_ORDER}/logs", **_READS)
async def get_logs(
    order_id: OrderId,
    operations: Connected,
    limit: Limit = ENTRIES_AT_ONCE,
    offset: Annotated[int, Query(ge=0)] = 0,
    after: Annotated[str, Query(description="The id of the last entry that you have received.")] = "",
) -> LogPage:
    """Show what the agents said and did on this host."""
    reply = await operations.reading.logs(order_id, after=after, offset=offset, limit=limit)
    return LogPage(**dict(reply), agent_work_order_id=order_id, limit=limit, offset=offset)


@router.get(f"{_ORDER}/network", **_READS)
async def get_network(
    order_id: OrderId,
    operations: Connected,
    limit: Limit = REQUESTS_AT_ONCE,
    offset: Annotated[int, Query(ge=0)] = 0,
) -> NetworkPage:
    """Show the network requests of a work order's agents and checks on this host, including refused requests."""
    reply = await operations.reading.network(order_id, offset=offset, limit=limit)
    return NetworkPage(**dict(reply), agent_work_order_id=order_id, limit=limit, offset=offset)


@router.get(f"{_ORDER}/rescues", **_OF_RESCUES)
async def get_rescues_of(order_id: OrderId, operations: Connected, everything: Everything = False) -> RescuesReply:
    """Show the rescues of one work order on this host, oldest first."""
    return await operations.rescues.list(order_id, everything=everything)


@router.post(f"{_ORDER}/merge", tags=["decisions"], **_DECIDES)
async def merge(order_id: OrderId, operations: Connected, body: CancelJson | None = None) -> TaskReply:
    """Merge the pull request of a work order, if the forge is a repository on this machine."""
    del body
    return await merge_here(operations, order_id)


@router.post(
    f"{_ORDER}/prompt", tags=["decisions"], status_code=HTTPStatus.CONFLICT, response_model=None, **_DECIDES
)
async def prompt(order_id: OrderId, operations: Connected, body: PromptJson) -> Problem:
    """Always refused, with the alternatives: an agent's step has one prompt, which is on record."""
    del body
    task, where = await operations.orders.get(order_id), f"/agent-work-orders/{order_id}"
    ways = {
        Status.PENDING: f"POST {where}/cancel, then create another one that includes it.",
        Status.WAITING: f"Where its plan waits: POST {where}/reject with it as `feedback`.",
        Status.COMPLETED: f"POST {where}/move to executing, with it as `feedback`.",
        Status.FAILED: f"POST {where}/retry with it as `feedback`.",
        Status.CANCELLED: f"POST {where}/retry with it as `feedback`.",
    }
    remedy = ways.get(task.status, f"POST {where}/move to blocked, then {where}/retry with it as `feedback`.")
    raise RefusedTransitionError(f"{task.id} is {task.status.value} and takes no further prompt.", remedy=remedy)


@router.get("/rescues", **_OF_RESCUES)
async def get_rescues(operations: Connected, everything: Everything = False) -> RescuesReply:
    """Show the rescues on this host, oldest first."""
    return await operations.rescues.list(everything=everything)


@router.post("/pipelines", **_creates("pipelines", "pipeline"))
async def create_pipeline(
    new: NewPipelineJson, operations: Connected, response: Response, idempotency_key: IdempotencyKey = ""
) -> PipelineReply:
    """Start a pipeline: circles and unknown dependencies among its issues are refused before anything starts."""
    reply = await operations.for_pipelines.start(new.order(), new.id, key=idempotency_key)
    response.headers["Location"] = f"/pipelines/{reply.pipeline.id}"
    return reply


async def _commits_of(operations: Operations, task: Task) -> CommitCount | None:
    if task.commit_sha is None:
        return None
    return await asyncio.to_thread(count_commits, operations.state, operations.git_env, task.id, task.commit_sha)
