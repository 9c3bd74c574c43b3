"""What people decide about a work order: the answers of the commands that say so."""

from collections.abc import Mapping

from clients.cli import tables
from clients.cli.orders import answer_of, with_operations
from clients.cli.reply import Reply
from clients.operations import Operations
from septet.contracts.decisions import MoveCall, RetryCall, checked
from septet.contracts.names import Step
from septet.contracts.replies import TaskReply
from septet.contracts.transitions import Target
from septet.errors import UsageError
from septet.settings import load_settings

Said = Mapping[str, str]
"""The person's words: `why`, and `feedback` for the agent."""


def move(order_id: str, stage: str, said: Said, *, address: str | None, as_json: bool) -> None:
    """Move a work order on the board."""

    async def work(operations: Operations) -> Reply:
        call = checked(MoveCall, to=_target(stage), who=load_settings().user, **said)
        return _told(await operations.move(order_id, call))

    with_operations(work, address=address, as_json=as_json)


def approve(order_id: str, plan: str | None, why: str, *, address: str | None, as_json: bool) -> None:
    """Go on with a plan, and say which one it was."""

    async def work(operations: Operations) -> Reply:
        answer = await operations.approve(order_id, plan, load_settings().user, why)
        return Reply.of(answer, lambda: tables.show_decision(answer.task, "approved"))

    with_operations(work, address=address, as_json=as_json)


def reject(order_id: str, plan: str | None, said: Said, *, address: str | None, as_json: bool) -> None:
    """Have it planned again, and say which plan was rejected."""

    async def work(operations: Operations) -> Reply:
        answer = await operations.reject(order_id, plan_sha256=plan, who=load_settings().user, **said)
        return Reply.of(answer, lambda: tables.show_decision(answer.task, "rejected"))

    with_operations(work, address=address, as_json=as_json)


def cancel(order_id: str, why: str, *, address: str | None, as_json: bool) -> None:
    """End a work order's agent and keep its work in a rescue."""

    async def work(operations: Operations) -> Reply:
        return _told(await operations.cancel(order_id, load_settings().user, why))

    with_operations(work, address=address, as_json=as_json)


def retry(  # noqa: PLR0913 -- the options of the command, by name
    order_id: str, from_step: str | None, said: Said, *, wait: bool, address: str | None, as_json: bool
) -> None:
    """Go on with a work order."""

    async def work(operations: Operations) -> Reply:
        step = _step(from_step)
        call = checked(RetryCall, from_step=step, who=load_settings().user, **said)
        return await answer_of(operations, await operations.retry(order_id, call), wait=wait)

    with_operations(work, address=address, as_json=as_json)


def _told(answer: TaskReply) -> Reply:
    return Reply.of(answer, lambda: tables.show_task(answer.task))


def _target(name: str) -> Target:
    try:
        return Target(name)
    except ValueError as error:
        remedy = f"A work order can be moved to {', '.join(Target)}."
        raise UsageError(f"{name}: there is no such stage.", remedy=remedy) from error


def _step(name: str | None) -> Step | None:
    if name is None:
        return None
    try:
        return Step(name)
    except ValueError as error:
        remedy = f"The steps are {', '.join(Step)}."
        raise UsageError(f"--from {name}: there is no such step.", remedy=remedy) from error
