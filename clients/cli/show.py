"""Commands that show work orders as they are now: one, its steps, or all by stage."""

from typing import TYPE_CHECKING, Annotated

import typer

from clients.cli import options as given
from clients.cli.reply import CommandReply

if TYPE_CHECKING:
    from clients.operations import Operations

app = typer.Typer()


@app.command()
@given.give_operations
async def show(operations: "Operations", order_id: given.Id, as_json: given.Json = False) -> CommandReply:
    """Show one work order.

    Example: septet show wo-42
    """
    from clients.cli.render.work_order import show_task
    from septet.contracts.names import Status

    detail = await operations.detail(order_id)
    runs = detail.task.status is Status.RUNNING and not detail.task.stuck and not as_json
    running = await operations.orders.running_step(order_id) if runs else ""
    return CommandReply.from_reply(detail, lambda: show_task(detail.task, running, detail.waiting_for))


@app.command()
@given.give_operations
async def steps(operations: "Operations", order_id: given.Id) -> CommandReply:
    """Show the steps of one work order.

    Example: septet steps wo-42 --json
    """
    from clients.cli.render.work_order import show_steps

    answer = await operations.steps(order_id)
    return CommandReply.from_reply(answer, lambda: show_steps(answer.steps))


@app.command()
@given.give_operations
async def board(
    operations: "Operations",
    project: Annotated[str | None, typer.Option(help="Only this project.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show it again when it changes.")] = False,
    after: given.Next = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The most work orders of a page.")] = 500,
    as_json: given.Json = False,
) -> CommandReply:
    """Show the work orders by stage.

    Example: septet board --project o/r --follow
    """
    from clients.cli.render.board import follow_board, show_board

    if follow:
        return await follow_board(operations, project, as_json=as_json)
    answer = await operations.board.page(project, after=after, limit=limit)
    return CommandReply.from_reply(answer, lambda: show_board(answer))
