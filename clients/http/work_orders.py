"""The paths of work orders: start them, and look at them."""

import asyncio
from datetime import timedelta
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, Field

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
    Connected,
    IdempotencyKey,
    Limit,
    NewWorkOrderJson,
    OrderId,
    json_alone,
)
from clients.http.problems import problems, problems_of_a_body
from clients.operations.operations import Operations
from clients.operations.reading import ENTRIES_AT_ONCE, REQUESTS_AT_ONCE
from septet.contracts.names import Status
from septet.contracts.replies import DetailReply, DiffReply, PlanReply
from septet.contracts.task import Task

MOST_HOURS: Final = 100_000
router = APIRouter(
    prefix="/agent-work-orders",
    tags=["work orders"],
    responses=problems(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY),
)


class ListFilter(BaseModel):
    """Which work orders a list is to have."""

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
_LOCATION = {"Location": {"description": "The work order's path.", "schema": {"type": "string"}}}


@router.post(
    "",
    status_code=HTTPStatus.CREATED,
    dependencies=[Depends(json_alone)],
    responses={
        **problems_of_a_body(),
        **problems(HTTPStatus.CONFLICT),
        HTTPStatus.CREATED: {"headers": _LOCATION},
    },
)
async def create_work_order(
    new: NewWorkOrderJson, operations: Connected, response: Response, idempotency_key: IdempotencyKey = ""
) -> AgentWorkOrder:
    """Start a work order; its stage says whether it waits on the board first."""
    reply = await operations.starting.start(new.order(), new.id, key=idempotency_key, again=new.again)
    response.headers["Location"] = f"{router.prefix}/{reply.task.id}"
    return (await _whole(operations, reply.task)).model_copy(update={"estimate": reply.estimate})


@router.get("", responses={HTTPStatus.OK: {"headers": _LINK}})
async def list_work_orders(
    operations: Connected, which: Annotated[ListFilter, Query()], request: Request, response: Response
) -> list[AgentWorkOrder]:
    """List work orders, open ones first, newest first, as far as search attributes tell."""
    page = await operations.orders.list(
        which.status,
        agent=which.agent,
        repository=which.repository,
        within=timedelta(hours=which.within_hours) if which.within_hours is not None else None,
        limit=which.limit,
        after=which.after,
    )
    if page.next is not None:
        following = request.url.include_query_params(limit=which.limit, after=page.next)
        response.headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'
    return [agent_work_order(task) for task in page.tasks]


@router.get("/{order_id}")
async def get_work_order(order_id: OrderId, operations: Connected) -> AgentWorkOrder:
    """Show one work order."""
    return await _whole(operations, await operations.orders.get(order_id))


@router.get("/{order_id}/detail")
async def get_detail(order_id: OrderId, operations: Connected) -> DetailReply:
    """Show one work order with its agent runs, its history, and what it waits for."""
    return await operations.reading.detail(order_id)


@router.get("/{order_id}/steps")
async def get_steps(order_id: OrderId, operations: Connected) -> StepHistory:
    """Show the finished steps."""
    reply = await operations.reading.steps(order_id)
    return StepHistory(**dict(reply), agent_work_order_id=order_id)


@router.get("/{order_id}/plan")
async def get_plan(order_id: OrderId, operations: Connected) -> PlanReply:
    """Show the plan, as this host has it."""
    return await operations.reading.plan(order_id)


@router.get("/{order_id}/diff")
async def get_diff(order_id: OrderId, operations: Connected) -> DiffReply:
    """Show what it has changed so far, as this host has it."""
    return await operations.reading.diff(order_id)


@router.get("/{order_id}/git-progress")
async def get_git_progress(order_id: OrderId, operations: Connected) -> GitProgress:
    """Show its progress in git."""
    task = await operations.orders.get(order_id)
    return git_progress(task, await _commits_of(operations, task))


@router.get("/{order_id}/logs")
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


@router.get("/{order_id}/network")
async def get_network(
    order_id: OrderId,
    operations: Connected,
    limit: Limit = REQUESTS_AT_ONCE,
    offset: Annotated[int, Query(ge=0)] = 0,
) -> NetworkPage:
    """Show what its agents and checks asked of the network on this host, and what was refused."""
    reply = await operations.reading.network(order_id, offset=offset, limit=limit)
    return NetworkPage(**dict(reply), agent_work_order_id=order_id, limit=limit, offset=offset)


async def _whole(operations: Operations, task: Task) -> AgentWorkOrder:
    """Return a work order with its commits counted, where it has any."""
    return agent_work_order(task, await _commits_of(operations, task))


async def _commits_of(operations: Operations, task: Task) -> CommitCount | None:
    if task.commit_sha is None:
        return None
    return await asyncio.to_thread(count_commits, operations.state, operations.git_env, task.id, task.commit_sha)
