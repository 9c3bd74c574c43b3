"""Check the open work orders of an issue, and the work orders that a new work order waits for."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from temporalio.client import WorkflowExecution

from clients.executions.messages import server_refusals
from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import Stage, watched_order
from septet.contracts.order import WorkOrderInput
from septet.errors import AlreadyRunningError, InvalidInputError
from septet.git.engine.address import parse_address
from workflows.wire.search_attributes import ISSUE, PULL_REQUEST, REPOSITORY, STAGE


async def check_start(orders: WorkOrders, order: WorkOrderInput, order_id: str | None, *, again: bool) -> None:
    """Refuse a work order that waits for a missing work order, or repeats an issue's open work order.

    Raises:
        InvalidInputError: A work order named in `after` does not exist.
        AlreadyRunningError: The issue has an open work order of another id, and `again` is false.
        ServerNotReachedError: The server refused.
    """
    others = [_check_exists(orders, other) for other in order.after if other != order_id]
    await asyncio.gather(*others, *([_check_issue(orders, order, order_id)] if not again else []))


async def reviews_of(orders: WorkOrders, repository: str, issues: Sequence[int]) -> str:
    """Return a line for each issue that already has a pull request in review; else an empty text."""
    rows = await _of_issues(orders, "PullRequest", repository, issues) if issues else []
    lines = (
        f"Issue {row.typed_search_attributes.get(ISSUE, '')} has a pull request in review, "
        f"by {watched_order(row.id)}: {row.typed_search_attributes.get(PULL_REQUEST, '')}"
        for row in rows
        if row.typed_search_attributes.get(STAGE) == Stage.REVIEW.value
    )
    return "\n".join(lines)


async def _check_exists(orders: WorkOrders, order_id: str) -> None:
    if not await orders.exists(order_id):
        remedy = "See which work orders there are: septet list"
        raise InvalidInputError(f"after: there is no work order {order_id}.", remedy=remedy)


async def _check_issue(orders: WorkOrders, order: WorkOrderInput, order_id: str | None) -> None:
    """Refuse a second work order for an issue; the server itself refuses a second work order of the same id."""
    if order.issue is None:
        return
    for row in await _of_issues(orders, "WorkOrder", order.repository, (order.issue,)):
        if row.id != order_id:
            project = parse_address(order.repository, home=Path.home()).project
            message = f"{row.id} already works on issue {order.issue} of {project}."
            remedy = f"Watch it: septet watch {row.id}. To start another one anyway, add --again."
            raise AlreadyRunningError(message, remedy=remedy)


async def _of_issues(
    orders: WorkOrders, kind: str, repository: str, issues: Sequence[int]
) -> list[WorkflowExecution]:
    """Return the rows of the open workflows of one kind for the named issues of a repository."""
    address = parse_address(repository, home=Path.home())
    numbers = ", ".join(f'"{issue}"' for issue in issues)
    query = f'WorkflowType="{kind}" AND ExecutionStatus="Running" AND SeptetIssue IN ({numbers})'
    with server_refusals():
        rows = [row async for row in orders.client.list_workflows(query)]
    urls = ((row, row.typed_search_attributes.get(REPOSITORY, "")) for row in rows)
    return [row for row, url in urls if url and parse_address(url, home=Path.home()).key == address.key]
