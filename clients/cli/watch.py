"""`septet watch` and `septet board --follow`: what changes, while it changes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live

from clients.cli import tables, watching
from clients.cli.orders import failure_of
from clients.cli.reply import Reply, print_json, reply
from clients.operations import Operations, connected
from septet.contracts.replies import BoardReply, TaskReply, WatchReply
from septet.settings import load_settings

_BOARD_SECONDS: Final = 2.0
_PAINTS_PER_SECOND: Final = 4.0


def watch(order_id: str, *, address: str | None, as_json: bool) -> None:
    """Show a work order until it is closed: only a completed one is a success, as with `--wait`."""

    async def work() -> Reply:
        operations = await connected(load_settings(), address)
        looks, out = operations.watch(order_id).looks(), tables.console()
        if as_json:
            last = await _until_closed(looks, lambda look: print_json(look.model_dump(mode="json")))
        elif out.is_terminal:
            last = await _painted(looks, out)
        else:
            last = await _written(looks, out)
        failed = failure_of(last.task)
        return Reply.of(last if as_json else TaskReply(task=last.task), lambda: _show_end(last, out), failed)

    reply(work, as_json=as_json)


def follow_board(project: str | None, *, address: str | None, as_json: bool) -> None:
    """Show the board whenever it has changed, until Ctrl-C."""

    async def work() -> Reply:
        operations = await connected(load_settings(), address)
        out = tables.console()
        if out.is_terminal and not as_json:
            with Live(console=out, screen=True, auto_refresh=False) as live:
                async for board in _boards(operations, project):
                    live.update(tables.board_view(board), refresh=True)
        async for board in _boards(operations, project):
            if as_json:
                print_json(board.model_dump(mode="json"))
            else:
                tables.show_board(board)
                out.print()
        return Reply(told=True)

    reply(work, as_json=as_json)


async def _boards(operations: Operations, project: str | None) -> AsyncIterator[BoardReply]:
    """Yield the board now and whenever it has changed; a large one is asked for more rarely."""
    loop, told = asyncio.get_running_loop(), None
    while True:
        began = loop.time()
        board = await operations.board(project)
        if board != told:
            told = board
            yield board
        await asyncio.sleep(max(_BOARD_SECONDS, 5 * (loop.time() - began)))


async def _until_closed(looks: AsyncIterator[WatchReply], take: Callable[[WatchReply], None]) -> WatchReply:
    """Hand on what is seen until the work order is closed, and return that."""
    look = await anext(looks)
    while not look.task.is_closed:
        take(look)
        look = await anext(looks)
    return look


async def _painted(looks: AsyncIterator[WatchReply], out: Console) -> WatchReply:
    """Paint the work order until it is closed; what is above it in the terminal stays."""
    picture = watching.Picture()
    with Live(picture, console=out, refresh_per_second=_PAINTS_PER_SECOND, transient=True):
        return await _until_closed(looks, picture.take)


async def _written(looks: AsyncIterator[WatchReply], out: Console) -> WatchReply:
    """Write a line for each thing that happens, also at the end."""
    lines = watching.Lines()

    def write(look: WatchReply) -> None:
        for line in lines.of(look):
            out.print(line, soft_wrap=True, markup=False)

    last = await _until_closed(looks, write)
    write(last)
    return last


def _show_end(look: WatchReply, out: Console) -> None:
    """Show what it came to, once: a pipe has had the steps."""
    parts: list[RenderableType] = [watching.figures(look)]
    if look.diff is not None and look.diff.files:
        parts.append(watching.diff_stat(look.diff, out.width))
    if out.is_terminal:
        tables.show_task(look.task, with_error=False)
        out.print(Group(*parts))
    else:
        out.print(parts[0], soft_wrap=True)
