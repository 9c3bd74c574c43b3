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
        return Reply({"host": host, "work_orders": orders}, lambda: _show(host, orders))

    reply(work, as_json=as_json)


def _show(host: str, orders: list[str]) -> None:
    typer.echo(f"Host {host} is given up by {', '.join(orders)}.")
    typer.echo(
        "With a checkpoint remote they go on elsewhere; without one they wait for the host: `septet show ID`."
    )
