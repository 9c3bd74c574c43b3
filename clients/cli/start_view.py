"""Show a work order that was just started: its id first, before anything else is loaded or requested."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from clients.cli.render.work_order import console, show_estimate, show_start_commands, start_line
from clients.cli.reply import CommandReply
from clients.cli.wrapping import echo
from septet.contracts.costs import Estimate
from septet.contracts.task import Task

if TYPE_CHECKING:
    from clients.operations.operations import Operations


async def show_new_order(
    operations: "Operations", task: Task, estimate: Awaitable[Estimate], notice: Awaitable[str], *, wait: bool
) -> CommandReply:
    """Show a work order that was just started: its id at once, then its estimate and notices.

    Args:
        operations: The operations of its server.
        task: The work order as its input describes it.
        estimate: The estimate of its cost.
        notice: The notices for stderr; or an empty text.
        wait: Whether to show it live until its end; else the next commands are printed.

    Raises:
        StoppedWaitingError: Ctrl-C.
    """
    out = console()
    out.print(start_line(task, "started"), soft_wrap=True)
    if not wait:
        if nobody := await operations.nobody_works():
            out.print(Text(nobody, style="yellow"), soft_wrap=True)
        await _show_later(out, estimate, notice)
        return CommandReply(show=lambda: show_start_commands(out, task))
    from clients.cli.task_reply import live_view, reply_after  # while the first worker takes the work order

    view = live_view(operations, task.id, out)
    view.begin()
    await _show_later(out, estimate, notice)
    return await reply_after(view)


async def _show_later(out: Console, estimate: Awaitable[Estimate], notice: Awaitable[str]) -> None:
    known = await estimate
    show_estimate(out, known.text if known.is_known else "")
    if text := await notice:
        echo(text, err=True)
