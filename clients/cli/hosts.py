"""`septet host-gone`: a person says that a host is dead."""

import typer

from clients.cli.reply import Reply, reply
from clients.hosts import give_up
from septet.settings import load_settings
from workers.connection import connect


def gone(host: str, *, address: str | None, as_json: bool) -> None:
    """Let the work orders of a host go on elsewhere now."""

    async def work() -> Reply:
        client = await connect(load_settings(), address=address)
        orders = await give_up(client, host)
        lines = f"Host {host} is given up. Going on elsewhere: {', '.join(orders)}."
        return Reply({"host": host, "work_orders": orders}, lambda: typer.echo(lines))

    reply(work, as_json=as_json)
