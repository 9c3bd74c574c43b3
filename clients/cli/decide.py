"""Commands by which people decide about a work order; its history says who did."""

from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from clients.cli import options as given
from clients.cli.grouped_help import Commands
from clients.cli.reply import CommandReply
from septet.errors import UsageError

if TYPE_CHECKING:
    from enum import StrEnum

    from clients.operations import Operations

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
    typer.Option("--finding", metavar="ID", help="A finding that is not a key; may be given several times."),
]


@app.command()
@given.give_operations
async def move(
    operations: "Operations",
    order_id: given.Id,
    stage: Annotated[
        str,
        typer.Argument(
            metavar="STAGE", help="A stage of the board, or cancelled.", autocompletion=given.complete_target
        ),
    ],
    why: given.Why = "",
    feedback: Feedback = "",
) -> CommandReply:
    """Move a work order on the board.

    Example: septet move wo-42 triaged --why 'next in line'
    """
    from clients.cli.task_reply import reply_of_task
    from septet.contracts.decisions import MoveCall, parse_decision
    from septet.contracts.transitions import Target

    remedy = f"A work order can be moved to {', '.join(Target)}."
    target = _word(Target, stage, f"{stage} is not a stage.", remedy)
    call = parse_decision(MoveCall, to=target, who=given.current_user(), why=why, feedback=feedback)
    return reply_of_task(await operations.decisions.move(order_id, call))


@app.command()
@given.give_operations
async def approve(
    operations: "Operations",
    order_id: given.Id,
    plan: Plan = None,
    finding: Findings = None,
    why: given.Why = "",
) -> CommandReply:
    """Approve the plan, or the findings, that a work order waits with.

    Example: septet approve wo-42
    """
    from clients.cli.render.work_order import show_decision

    findings = tuple(finding or ())
    answer = await operations.decisions.approve(order_id, plan, given.current_user(), why, findings)
    return CommandReply.from_reply(answer, lambda: show_decision(answer.task, "approved", findings))


@app.command()
@given.give_operations
async def reject(
    operations: "Operations", order_id: given.Id, feedback: Feedback, plan: Plan = None, why: given.Why = ""
) -> CommandReply:
    """Reject the plan, or the findings, that a work order waits with: it works again, with your feedback.

    Example: septet reject wo-42 --feedback 'Round the total, not each item.'
    """
    from clients.cli.render.work_order import show_decision

    answer = await operations.decisions.reject(order_id, feedback, plan, given.current_user(), why)
    return CommandReply.from_reply(answer, lambda: show_decision(answer.task, "rejected"))


@app.command()
@given.give_operations
async def cancel(operations: "Operations", order_id: given.Id, why: given.Why = "") -> CommandReply:
    """Stop a work order and keep its work in a rescue.

    Example: septet cancel wo-42
    """
    from clients.cli.task_reply import reply_of_task

    return reply_of_task(await operations.decisions.cancel(order_id, given.current_user(), why))


@app.command()
@given.give_operations
async def retry(
    operations: "Operations",
    order_id: given.Id,
    from_step: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="STEP", help="An earlier step to go back to.", autocompletion=given.complete_step
        ),
    ] = None,
    why: given.Why = "",
    feedback: Feedback = "",
    wait: given.Wait = False,
    as_json: given.Json = False,
) -> CommandReply:
    """Continue a work order that failed or was cancelled, or one that is blocked.

    Example: septet retry wo-42 --from implement_plan
    """
    from clients.cli.task_reply import reply_at_end
    from septet.contracts.decisions import RetryCall, parse_decision
    from septet.contracts.names import Step

    step = None
    if from_step is not None:
        message, remedy = f"--from {from_step}: there is no such step.", f"The steps are {', '.join(Step)}."
        step = _word(Step, from_step, message, remedy)
    call = parse_decision(RetryCall, from_step=step, who=given.current_user(), why=why, feedback=feedback)
    answer = await operations.decisions.retry(order_id, call)
    return await reply_at_end(operations, answer, wait=wait, as_json=as_json, verb="continues")


def _word(words: "type[Word]", name: str, message: str, remedy: str) -> "Word":
    try:
        return words(name)
    except ValueError as error:
        raise UsageError(message, remedy=remedy) from error
