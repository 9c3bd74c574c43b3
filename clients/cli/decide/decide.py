"""The commands of decisions on work orders; the history of a work order shows who decided."""

from enum import StrEnum
from typing import TypeVar

from clients.cli.decide.bulk import ManyOrders, check_choice
from clients.cli.decide.options import ApproveOptions, CancelOptions, MoveOptions, RejectOptions, RetryOptions
from clients.cli.live.task_reply import reply_at_end, reply_of_move, reply_of_task
from clients.cli.render.work_order import show_decision
from clients.cli.terminal.reply import CommandReply
from septet.contracts.decisions import MoveCall, RetryCall, Target, parse_decision
from septet.contracts.names import SHA256, Step
from septet.errors import UsageError
from septet.settings import load_settings

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
    answer = await operations.decisions.reject(
        options.order_id, options.feedback, options.plan, load_settings().user, options.why
    )
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
    answer = await decisions.retry(ids[0], call)
    return await reply_at_end(
        operations, answer, wait=options.wait, as_json=options.server.as_json, verb="continues"
    )


def _check_plan(plan: str | None) -> None:
    """Refuse a plan's name that is not a SHA-256."""
    if plan is not None and SHA256.fullmatch(plan) is None:
        remedy = "`septet plan ID` shows that of the plan that waits; without --plan, that plan is meant."
        raise UsageError("--plan must be a SHA-256: 64 hexadecimal digits.", remedy=remedy)


def _word(words: type[Word], name: str, message: str, choices: str) -> Word:
    try:
        return words(name)
    except ValueError as error:
        raise UsageError(message, remedy=f"{choices} {', '.join(words)}.") from error
