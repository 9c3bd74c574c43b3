"""Check whether the work orders that a work order waits for are over, and if not, why not."""

import asyncio
from dataclasses import dataclass
from typing import Final

from temporalio import activity
from temporalio.client import WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from activities.board.polling import not_yet
from activities.host.payloads import read_memo
from septet.board import circle_of
from septet.contracts.board import MEMO, OthersLook, Until
from septet.contracts.names import Stage, watch_id
from septet.contracts.task import Task
from septet.settings import Settings

_A_PERSON: Final = "a person decides: move this one to executing, or retry the other"
_AT_A_TIME: Final = 10


@dataclass(frozen=True, slots=True)
class Others:
    """Checks the work orders that a work order waits for."""

    settings: Settings

    @activity.defn(name="look_at_others")
    async def look_at_others(self, look: OthersLook) -> None:
        """Return if all work orders that the caller waits for are over. Idempotent; writes nothing.

        Raises:
            ApplicationError: A work order is not over, or the server did not answer; Temporal retries after a
                growing pause.
        """
        places = asyncio.Semaphore(_AT_A_TIME)

        async def one(other: str) -> str | None:
            async with places:
                return await _why_not(other, look.until)

        try:
            held_up = [why for why in await asyncio.gather(*map(one, look.after)) if why]
            if held_up and (circle := await circle_of(look.id, look.after, _comes_after)):
                held_up.insert(0, f"they wait for each other: {circle}")
        except RPCError as error:
            raise not_yet(
                f"The server did not answer: {error.message}", self.settings, kind="ComesAfter"
            ) from error
        if held_up:
            raise not_yet("; ".join(held_up), self.settings, kind="ComesAfter")


async def _why_not(other: str, until: Until) -> str | None:
    """Return why a work order is not over; `None` if it is over."""
    order = await _describe(other)
    if order is None or order.workflow_type != "WorkOrder":
        return f"there is no work order {other} yet"
    if order.status is WorkflowExecutionStatus.RUNNING:
        return f"{other} is {_stage(order) or 'executing'}"
    if until == "closed":
        return None
    if order.status is not WorkflowExecutionStatus.COMPLETED:
        how = order.status.name.lower() if order.status else "closed"
        return f"{other} ended as {how}: {_A_PERSON}"
    return None if until == "completed" else await _why_not_merged(other)


async def _why_not_merged(other: str) -> str | None:
    watch = await _describe(watch_id(other))
    stage = _stage(watch) if watch is not None else None
    if watch is None or stage is None:
        return f"{other} is completed, but no host can see whether its pull request is merged: {_A_PERSON}"
    if stage == Stage.DONE:
        return None
    if stage == Stage.BLOCKED:
        return f"{other} is blocked, its pull request is not merged: {_A_PERSON}"
    return f"{other} is in review, its pull request is not merged yet"


async def _comes_after(order_id: str) -> tuple[str, ...]:
    """Return the work orders that a waiting work order comes after, from its row on the board."""
    order = await _describe(order_id)
    if order is None or order.status is not WorkflowExecutionStatus.RUNNING:
        return ()
    task = await read_memo(order, MEMO, Task)
    return task.after if task is not None else ()


async def _describe(workflow_id: str) -> WorkflowExecutionDescription | None:
    try:
        return await activity.client().get_workflow_handle(workflow_id).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise


def _stage(description: WorkflowExecutionDescription) -> str | None:
    stage, *_ = description.search_attributes.get("SeptetStage") or [None]
    return str(stage) if stage else None
