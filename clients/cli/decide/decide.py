"""The commands for decisions on work orders."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, TypeVar

from clients.cli.decide.options import (
    ApproveOptions,
    CancelOptions,
    MoveOptions,
    OrderChoice,
    RejectOptions,
    RetryOptions,
)
from clients.cli.render.board import show_list
from clients.cli.render.live_view import read_line
from clients.cli.render.task_reply import reply_at_end, reply_of_move, reply_of_task
from clients.cli.render.work_order import show_decision
from clients.cli.terminal.console import console
from clients.cli.terminal.reply import CommandReply
from clients.error_reply import error_reply
from clients.operations.operations import Operations
from clients.starting.repository_path import whole_path
from clients.temporal.work_orders import OrderFilter
from septet.contracts.decisions import MoveCall, RetryCall, Target, parse_decision
from septet.contracts.names import SHA256, Status, Step
from septet.contracts.replies import TaskReply, TasksReply
from septet.contracts.task import Task
from septet.errors import SeptetError, UsageError
from septet.settings import load_settings

Verb = Literal["retry", "cancel", "approve"]
_AT_ONCE: Final = 8
_PAGE: Final = 1000
_STATES: Final = {"retry": "failed", "cancel": "", "approve": "waiting"}
"""By command, the status of the work orders to choose if no ids are given; an empty text means all open ones."""


def check_choice(
    ids: Sequence[str], choice: OrderChoice, error_type: str | None = None, single: Sequence[str] = ()
) -> None:
    """Check that either ids or filters choose the work orders.

    `single` names the given options that allow only one work order.

    Raises:
        UsageError: There are no ids and no filters, or both; or an option allows only one work order.
    """
    is_chosen = bool(choice.everything or choice.repo or choice.agent or error_type)
    if not ids and not is_chosen:
        remedy = "Name one or more, such as wo-42, or choose some: --all, --repo REPO or --agent AGENT."
        raise UsageError("No work order is named.", remedy=remedy)
    if ids and is_chosen:
        raise UsageError("Work orders are named and chosen at once.", remedy="Leave out the ids, or the options.")
    if single and len(ids) != 1:
        raise UsageError(f"{single[0]} is for one work order.", remedy="Name one, or leave the option out.")


@dataclass(frozen=True, slots=True)
class ManyOrders:
    """One decision on many work orders; a refusal by one work order does not stop the others."""

    operations: Operations
    verb: Verb
    act: "Callable[[Task], Awaitable[TaskReply]]"

    async def decide(
        self, ids: Sequence[str], choice: OrderChoice, error_type: str | None = None, *, as_json: bool
    ) -> CommandReply:
        """Show the chosen work orders, and carry out the decision on each after the person confirms."""
        tasks, refusals = await _each(ids or await self._chosen_ids(choice, error_type), self._look)
        if not ids and self.verb == "approve":
            tasks = [task for task in tasks if task.waits_for_a_decision]
        if not as_json and (tasks or not refusals):
            show_list(TasksReply(tasks=tuple(tasks)), "", is_filtered=True)
        is_done = bool(tasks) and (choice.yes or (not as_json and await self._is_wanted(len(tasks))))
        if is_done:
            meant = {task.id: task for task in tasks}

            async def act(order_id: str) -> Task:
                return (await self.act(meant[order_id])).task

            tasks, failures = await _each(meant, act)
            refusals |= failures
        return self._reply(tasks, refusals, is_done=is_done)

    async def _look(self, order_id: str) -> Task:
        """Return a work order: before an approval, from its worker; otherwise, from the server alone."""
        orders = self.operations.orders
        if self.verb == "approve":
            return await orders.get(order_id)
        task = await orders.without_worker(await orders.describe(order_id))
        if self.verb == "cancel" and task.is_closed:
            raise orders.refusal_of_cancel(task)
        return task

    async def _chosen_ids(self, choice: OrderChoice, error_type: str | None) -> list[str]:
        """Return the ids of the work orders that match the filters."""
        state, after = _STATES[self.verb], ""
        tasks: list[Task] = []
        which = OrderFilter(
            status=Status(state) if state else None,
            is_open=not state,
            agent=choice.agent,
            repository=whole_path(choice.repo) if choice.repo else "",
        )
        while True:
            page = await self.operations.orders.list(which, limit=_PAGE, after=after)
            tasks += page.tasks
            if page.next is None:
                break
            after = page.next
        if error_type is not None:
            tasks = [task for task in tasks if task.error is not None and task.error.type == error_type]
        return [task.id for task in tasks]

    async def _is_wanted(self, count: int) -> bool:
        """Prompt the person for a confirmation, and return whether the person confirmed."""
        these, word = f"these {count}" if count > 1 else "this one", ""
        if sys.stdin.isatty():
            console().print(f"{self.verb.capitalize()} {these}? [y/N] ", end="", markup=False)
            word = await read_line(sys.stdin.fileno()) or ""
        if word.lower() in {"y", "yes"}:
            return True
        console().print(f"Nothing was done. To {self.verb} {these}, add --yes.", soft_wrap=True)
        return False

    def _reply(self, tasks: "Sequence[Task]", refusals: dict[str, SeptetError], *, is_done: bool) -> CommandReply:
        errors, failure = [], None
        for order_id, error in refusals.items():
            errors.append({"id": order_id, **error_reply(error).error.model_dump(mode="json")})
            failure = failure or type(error)(_name_order(order_id, error.message), remedy=error.remedy)
        payload = {"done": is_done, "tasks": [task.model_dump(mode="json") for task in tasks], "errors": errors}

        def show() -> None:
            for task in tasks if is_done else ():
                console().print(f"{task.id} is {task.status.value}.", soft_wrap=True, markup=False)
            for each in errors[1:]:  # the command itself shows the first one
                message = _name_order(each["id"], each["message"])
                console().print(message, style="red", soft_wrap=True, markup=False)

        return CommandReply(payload, show, failure)


def _name_order(order_id: str, message: str) -> str:
    """Return a message that begins with the work order's id; add the id unless it is there already."""
    return message if message.startswith(f"{order_id} ") else f"{order_id}: {message}"


async def _each(
    ids: Iterable[str], act: "Callable[[str], Awaitable[Task]]"
) -> "tuple[list[Task], dict[str, SeptetError]]":
    """Call `act` for each id, several at a time; return the work orders, and the errors by id."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(order_id: str) -> "Task | SeptetError":
        async with places:
            try:
                return await act(order_id)
            except SeptetError as error:
                return error

    each = list(dict.fromkeys(ids))
    results = dict(zip(each, await asyncio.gather(*map(one, each)), strict=True))
    refusals = {order_id: result for order_id, result in results.items() if isinstance(result, SeptetError)}
    return [result for result in results.values() if not isinstance(result, SeptetError)], refusals


Word = TypeVar("Word", bound=StrEnum)


async def move(options: MoveOptions) -> CommandReply:
    """Move a work order on the board."""
    to = _word(Target, options.stage, f"{options.stage} is not a stage.", "A work order can be moved to")
    call = parse_decision(MoveCall, to=to, who=load_settings().user, why=options.why, feedback=options.feedback)
    operations = await options.server.connect()
    return reply_of_move(await operations.decisions.move(options.order_id, call))


async def approve(options: ApproveOptions) -> CommandReply:
    """Approve the plan or the findings of a work order, or the plans of several."""
    single = [name for name, value in (("--plan", options.plan), ("--finding", options.finding)) if value]
    ids = options.ids or []
    check_choice(ids, options.choice, single=single)
    _check_plan(options.plan)
    operations = await options.server.connect()
    decisions, user, why = operations.decisions, load_settings().user, options.why
    if len(ids) != 1:
        many = ManyOrders(
            operations, "approve", lambda task: decisions.approve(task.id, task.plan_sha256, user, why)
        )
        return await many.decide(ids, options.choice, as_json=options.server.as_json)
    findings = tuple(options.finding or ())
    answer = await decisions.approve(ids[0], options.plan, user, why, findings)
    return CommandReply.from_reply(answer, lambda: show_decision(answer.task, "approved", findings))


async def reject(options: RejectOptions) -> CommandReply:
    """Reject the plan or the findings of a work order: the agent tries again with your feedback."""
    _check_plan(options.plan)
    operations = await options.server.connect()
    asked = options.order_id, options.feedback, options.plan
    answer = await operations.decisions.reject(*asked, load_settings().user, options.why)
    return CommandReply.from_reply(answer, lambda: show_decision(answer.task, "rejected"))


async def cancel(options: CancelOptions) -> CommandReply:
    """Stop work orders and keep their work in rescues."""
    ids = options.ids or []
    check_choice(ids, options.choice)
    operations = await options.server.connect()
    decisions, user, why = operations.decisions, load_settings().user, options.why
    if len(ids) != 1:
        many = ManyOrders(operations, "cancel", lambda task: decisions.cancel(task.id, user, why))
        return await many.decide(ids, options.choice, as_json=options.server.as_json)
    return reply_of_task(await decisions.cancel(ids[0], user, why))


async def retry(options: RetryOptions) -> CommandReply:
    """Continue work orders that failed, were cancelled, are blocked or ended with their plan."""
    ids = options.ids or []
    check_choice(ids, options.choice, options.error_type, single=["--wait"] if options.wait else [])
    step = options.from_step
    call = parse_decision(
        RetryCall,
        from_step=step and _word(Step, step, f"--from {step}: there is no such step.", "The steps are"),
        who=load_settings().user,
        why=options.why,
        feedback=options.feedback,
    )
    operations = await options.server.connect()
    decisions = operations.decisions
    if len(ids) != 1:
        many = ManyOrders(operations, "retry", lambda task: decisions.retry(task.id, call))
        return await many.decide(ids, options.choice, options.error_type, as_json=options.server.as_json)
    answer, as_json = await decisions.retry(ids[0], call), options.server.as_json
    return await reply_at_end(operations, answer, wait=options.wait, as_json=as_json, verb="continues")


def _check_plan(plan: str | None) -> None:
    """Refuse a value of `--plan` that is not a SHA-256."""
    if plan is not None and SHA256.fullmatch(plan) is None:
        remedy = "`septet plan ID` shows that of the plan that waits; without --plan, that plan is meant."
        raise UsageError("--plan must be a SHA-256: 64 hexadecimal digits.", remedy=remedy)


def _word(words: type[Word], name: str, message: str, choices: str) -> Word:
    try:
        return words(name)
    except ValueError as error:
        raise UsageError(message, remedy=f"{choices} {', '.join(words)}.") from error
