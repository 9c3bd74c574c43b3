"""Commands by which people decide about a work order; its history says who did."""

from enum import StrEnum
from typing import Annotated, TypeVar

from clients.cli import bulk
from clients.cli import options as given
from clients.cli.options import argument, completed_by, option
from clients.cli.render.work_order import show_decision
from clients.cli.reply import CommandReply
from clients.cli.server import SERVER, Server
from clients.cli.task_reply import reply_at_end, reply_of_move, reply_of_task
from septet.contracts.decisions import MoveCall, RetryCall, Target, parse_decision
from septet.contracts.names import SHA256, Step
from septet.errors import UsageError

Word = TypeVar("Word", bound=StrEnum)


Feedback = Annotated[str, option(metavar="TEXT", help="What the agent should do differently.")]
Plan = Annotated[
    str | None, option(metavar="SHA256", help="The plan that you read; otherwise the one that waits now.")
]
Findings = Annotated[
    list[str] | None,
    option("--finding", metavar="ID", help="A finding that may be pushed; can be repeated."),
]


async def move(
    order_id: given.Id,
    stage: Annotated[
        str,
        argument(
            metavar="STAGE",
            help="One of collected, triaged, executing, review, done, blocked and cancelled.",
            completer=completed_by("targets"),
        ),
    ],
    /,
    *,
    why: given.Why = "",
    feedback: Feedback = "",
    server: Server = SERVER,
) -> CommandReply:
    """Move a work order on the board."""
    call = parse_decision(MoveCall, to=_target(stage), who=given.current_user(), why=why, feedback=feedback)
    operations = await server.connect()
    return reply_of_move(await operations.decisions.move(order_id, call))


def _check_plan(plan: str | None) -> None:
    """See whether the plan is named as it can be."""
    if plan is not None and SHA256.fullmatch(plan) is None:
        remedy = "`septet plan ID` shows that of the plan that waits; without --plan, that plan is meant."
        raise UsageError("--plan must be a SHA-256: 64 hexadecimal digits.", remedy=remedy)


async def approve(
    ids: given.Ids = None,
    /,
    *,
    choice: bulk.OrderChoice = bulk.NO_CHOICE,
    plan: Plan = None,
    finding: Findings = None,
    why: given.Why = "",
    server: Server = SERVER,
) -> CommandReply:
    """Approve the plan or the findings of a work order, or the plans of several."""
    single = [name for name, value in (("--plan", plan), ("--finding", finding)) if value]
    bulk.check_choice(ids or [], choice, single=single)
    _check_plan(plan)
    operations = await server.connect()
    decisions, user, findings = operations.decisions, given.current_user(), tuple(finding or ())
    ids = ids or []
    if len(ids) != 1:
        many = bulk.ManyOrders(
            operations, "approve", lambda task: decisions.approve(task.id, task.plan_sha256, user, why)
        )
        return await many.decide(ids, choice, as_json=server.as_json)
    answer = await decisions.approve(ids[0], plan, user, why, findings)
    return CommandReply.from_reply(answer, lambda: show_decision(answer.task, "approved", findings))


async def reject(
    order_id: given.Id, /, *, feedback: Feedback, plan: Plan = None, why: given.Why = "", server: Server = SERVER
) -> CommandReply:
    """Reject the plan or the findings of a work order: the agent tries again with your feedback."""
    _check_plan(plan)
    operations = await server.connect()
    answer = await operations.decisions.reject(order_id, feedback, plan, given.current_user(), why)
    return CommandReply.from_reply(answer, lambda: show_decision(answer.task, "rejected"))


async def cancel(
    ids: given.Ids = None,
    /,
    *,
    choice: bulk.OrderChoice = bulk.NO_CHOICE,
    why: given.Why = "",
    server: Server = SERVER,
) -> CommandReply:
    """Stop work orders and keep their work in rescues."""
    bulk.check_choice(ids or [], choice)
    operations = await server.connect()
    decisions, user = operations.decisions, given.current_user()
    ids = ids or []
    if len(ids) != 1:
        many = bulk.ManyOrders(operations, "cancel", lambda task: decisions.cancel(task.id, user, why))
        return await many.decide(ids, choice, as_json=server.as_json)
    return reply_of_task(await decisions.cancel(ids[0], user, why))


async def retry(
    ids: given.Ids = None,
    /,
    *,
    choice: bulk.OrderChoice = bulk.NO_CHOICE,
    error_type: bulk.Failed = None,
    from_step: Annotated[
        str | None,
        option(
            "--from",
            metavar="STEP",
            help="An earlier step to go back to, also of a completed one.",
            completer=completed_by("steps"),
        ),
    ] = None,
    why: given.Why = "",
    feedback: Feedback = "",
    wait: given.Wait = False,
    server: Server = SERVER,
) -> CommandReply:
    """Continue work orders that failed, were cancelled, are blocked or ended with their plan."""
    bulk.check_choice(ids or [], choice, error_type, single=["--wait"] if wait else [])
    call = parse_decision(
        RetryCall, from_step=_step(from_step), who=given.current_user(), why=why, feedback=feedback
    )
    operations = await server.connect()
    decisions = operations.decisions
    ids = ids or []
    if len(ids) != 1:
        many = bulk.ManyOrders(operations, "retry", lambda task: decisions.retry(task.id, call))
        return await many.decide(ids, choice, error_type, as_json=server.as_json)
    answer = await decisions.retry(ids[0], call)
    return await reply_at_end(operations, answer, wait=wait, as_json=server.as_json, verb="continues")


def _target(stage: str) -> Target:

    return _word(Target, stage, f"{stage} is not a stage.", f"A work order can be moved to {', '.join(Target)}.")


def _step(name: str | None) -> "Step | None":

    if name is None:
        return None
    return _word(Step, name, f"--from {name}: there is no such step.", f"The steps are {', '.join(Step)}.")


def _word(words: "type[Word]", name: str, message: str, remedy: str) -> "Word":
    try:
        return words(name)
    except ValueError as error:
        raise UsageError(message, remedy=remedy) from error
