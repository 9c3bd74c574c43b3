"""Commands by which people decide about a work order; its history says who did."""

from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from clients.cli import bulk
from clients.cli import options as given
from clients.cli.grouped_help import Commands
from clients.cli.reply import CommandReply
from septet.errors import UsageError

if TYPE_CHECKING:
    from enum import StrEnum

    from clients.operations import Operations
    from septet.contracts.names import Step
    from septet.contracts.transitions import Target

    Word = TypeVar("Word", bound=StrEnum)

app = Commands()

Feedback = Annotated[
    str, typer.Option(metavar="TEXT", help="What the agent should do differently.", show_default=False)
]
Plan = Annotated[
    str | None, typer.Option(metavar="SHA256", help="The plan that you read; otherwise the one that waits now.")
]
Findings = Annotated[
    list[str] | None,
    typer.Option("--finding", metavar="ID", help="A finding that may be pushed; can be repeated."),
]


def _check_stage(stage: str, **_: object) -> None:
    """See whether there is such a stage."""
    _target(stage)


@app.command()
@given.check_first(_check_stage)
async def move(
    operations: "Operations",
    order_id: given.Id,
    stage: Annotated[
        str,
        typer.Argument(
            metavar="STAGE",
            help="One of collected, triaged, executing, review, done, blocked and cancelled.",
            autocompletion=given.complete_target,
        ),
    ],
    why: given.Why = "",
    feedback: Feedback = "",
) -> CommandReply:
    """Move a work order on the board.

    Example: septet move wo-42 triaged --why 'next in line'
    """
    from clients.cli.task_reply import reply_of_move
    from septet.contracts.decisions import MoveCall, parse_decision

    call = parse_decision(MoveCall, to=_target(stage), who=given.current_user(), why=why, feedback=feedback)
    return reply_of_move(await operations.decisions.move(order_id, call))


def _check_plan(plan: str | None, **_: object) -> None:
    """See whether the plan is named as it can be."""
    from septet.contracts.names import SHA256

    if plan is not None and SHA256.fullmatch(plan) is None:
        remedy = "`septet plan ID` shows that of the plan that waits; without --plan, that plan is meant."
        raise UsageError("--plan must be a SHA-256: 64 hexadecimal digits.", remedy=remedy)


def _check_approval(
    ids: list[str] | None,
    choice: bulk.OrderChoice,
    plan: str | None,
    finding: list[str] | None,
    **_: object,
) -> None:
    """See which work orders are meant, and whether the plan is named as it can be."""
    single = [name for name, value in (("--plan", plan), ("--finding", finding)) if value]
    bulk.check_choice(ids or [], choice, single=single)
    _check_plan(plan)


@app.command()
@given.expand_options
@given.check_first(_check_approval)
async def approve(
    operations: "Operations",
    *,
    ids: given.Ids = None,
    choice: bulk.OrderChoice,
    plan: Plan = None,
    finding: Findings = None,
    why: given.Why = "",
    as_json: given.Json = False,
) -> CommandReply:
    """Approve the plan or the findings of a work order, or the plans of several.

    Example: septet approve wo-42
    """
    from clients.cli.render.work_order import show_decision

    decisions, user, findings = operations.decisions, given.current_user(), tuple(finding or ())
    ids = ids or []
    if len(ids) != 1:
        many = bulk.ManyOrders(
            operations, "approve", lambda task: decisions.approve(task.id, task.plan_sha256, user, why)
        )
        return await many.decide(ids, choice, as_json=as_json)
    answer = await decisions.approve(ids[0], plan, user, why, findings)
    return CommandReply.from_reply(answer, lambda: show_decision(answer.task, "approved", findings))


@app.command()
@given.check_first(_check_plan)
async def reject(
    operations: "Operations", order_id: given.Id, feedback: Feedback, plan: Plan = None, why: given.Why = ""
) -> CommandReply:
    """Reject the plan or the findings of a work order: the agent tries again with your feedback.

    Example: septet reject wo-42 --feedback 'Round the total, not each item.'
    """
    from clients.cli.render.work_order import show_decision

    answer = await operations.decisions.reject(order_id, feedback, plan, given.current_user(), why)
    return CommandReply.from_reply(answer, lambda: show_decision(answer.task, "rejected"))


def _check_cancel(ids: list[str] | None, choice: bulk.OrderChoice, **_: object) -> None:
    """See which work orders are meant."""
    bulk.check_choice(ids or [], choice)


@app.command()
@given.expand_options
@given.check_first(_check_cancel)
async def cancel(
    operations: "Operations",
    *,
    ids: given.Ids = None,
    choice: bulk.OrderChoice,
    why: given.Why = "",
    as_json: given.Json = False,
) -> CommandReply:
    """Stop work orders and keep their work in rescues.

    Example: septet cancel wo-42
    """
    from clients.cli.task_reply import reply_of_task

    decisions, user = operations.decisions, given.current_user()
    ids = ids or []
    if len(ids) != 1:
        many = bulk.ManyOrders(operations, "cancel", lambda task: decisions.cancel(task.id, user, why))
        return await many.decide(ids, choice, as_json=as_json)
    return reply_of_task(await decisions.cancel(ids[0], user, why))


def _check_retry(
    ids: list[str] | None,
    choice: bulk.OrderChoice,
    error_type: str | None,
    from_step: str | None,
    *,
    wait: bool,
    **_: object,
) -> None:
    """See which work orders are meant, and whether there is such a step."""
    bulk.check_choice(ids or [], choice, error_type, single=["--wait"] if wait else [])
    _step(from_step)


@app.command()
@given.expand_options
@given.check_first(_check_retry)
async def retry(
    operations: "Operations",
    *,
    ids: given.Ids = None,
    choice: bulk.OrderChoice,
    error_type: bulk.Failed = None,
    from_step: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="STEP",
            help="An earlier step to go back to, also of a completed one.",
            autocompletion=given.complete_step,
        ),
    ] = None,
    why: given.Why = "",
    feedback: Feedback = "",
    wait: given.Wait = False,
    as_json: given.Json = False,
) -> CommandReply:
    """Continue work orders that failed, were cancelled, are blocked or ended with their plan.

    Example: septet retry wo-42 --from implement_plan
    """
    from clients.cli.task_reply import reply_at_end
    from septet.contracts.decisions import RetryCall, parse_decision

    call = parse_decision(
        RetryCall, from_step=_step(from_step), who=given.current_user(), why=why, feedback=feedback
    )
    decisions = operations.decisions
    ids = ids or []
    if len(ids) != 1:
        many = bulk.ManyOrders(operations, "retry", lambda task: decisions.retry(task.id, call))
        return await many.decide(ids, choice, error_type, as_json=as_json)
    answer = await decisions.retry(ids[0], call)
    return await reply_at_end(operations, answer, wait=wait, as_json=as_json, verb="continues")


def _target(stage: str) -> "Target":
    from septet.contracts.transitions import Target

    return _word(Target, stage, f"{stage} is not a stage.", f"A work order can be moved to {', '.join(Target)}.")


def _step(name: str | None) -> "Step | None":
    from septet.contracts.names import Step

    if name is None:
        return None
    return _word(Step, name, f"--from {name}: there is no such step.", f"The steps are {', '.join(Step)}.")


def _word(words: "type[Word]", name: str, message: str, remedy: str) -> "Word":
    try:
        return words(name)
    except ValueError as error:
        raise UsageError(message, remedy=remedy) from error
