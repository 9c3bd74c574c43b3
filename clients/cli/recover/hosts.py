"""`septet host-gone`: declare a host dead, so that its work continues elsewhere."""

from dataclasses import asdict
from typing import Final

from clients.cli.recover.options import HostGoneOptions
from clients.cli.terminal.output import say
from clients.cli.terminal.reply import CommandReply
from clients.temporal.hosts import give_up
from septet.settings import load_settings
from septet.system.text import name_some
from workers.connection.connection import connect

_NAMED: Final = 5


async def host_gone(options: HostGoneOptions) -> CommandReply:
    """Declare a host dead, so that its work orders and pipelines continue elsewhere."""
    told = await give_up(await connect(load_settings(), address=options.server.address), options.host)
    orders, pipelines = told.work_orders, told.pipelines
    names = [*orders, *(f"pipeline {each}" for each in pipelines)]
    show = f"septet show {orders[0]}" if orders else f"septet pipeline show {pipelines[0]}"
    text = (
        f"Host {options.host} is marked as gone for {', '.join(names)}.\n"
        f"With a checkpoint remote they continue on another host; without one they wait for this one: {show}"
    )
    if told.unanswered:
        text += f"\nNo worker answered for {name_some(told.unanswered, _NAMED)}: repeat the command later."
    return CommandReply({"host": options.host, **asdict(told)}, lambda: say(text))
