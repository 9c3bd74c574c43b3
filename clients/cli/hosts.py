"""`septet host-gone`: declare a host dead, so that its work continues elsewhere."""

from dataclasses import asdict
from typing import Annotated, Final

from clients.cli.options import argument
from clients.cli.reply import CommandReply
from clients.cli.server import SERVER, Server
from clients.cli.wrapping import say
from clients.temporal.hosts import give_up
from septet.settings import load_settings
from septet.system.text import name_some
from workers.connection.connection import connect

_NAMED: Final = 5


async def host_gone(
    host: Annotated[str, argument(metavar="HOST", help="The host's id, as `septet worker` prints it.")],
    /,
    *,
    server: Server = SERVER,
) -> CommandReply:
    """Declare a host dead, so that its work orders and pipelines continue elsewhere."""
    told = await give_up(await connect(load_settings(), address=server.address), host)
    orders, pipelines = told.work_orders, told.pipelines
    names = [*orders, *(f"pipeline {each}" for each in pipelines)]
    show = f"septet show {orders[0]}" if orders else f"septet pipeline show {pipelines[0]}"
    text = (
        f"Host {host} is marked as gone for {', '.join(names)}.\n"
        f"With a checkpoint remote they continue on another host; without one they wait for this one: {show}"
    )
    if told.unanswered:
        text += f"\nNo worker answered for {name_some(told.unanswered, _NAMED)}: repeat the command later."
    return CommandReply({"host": host, **asdict(told)}, lambda: say(text))
