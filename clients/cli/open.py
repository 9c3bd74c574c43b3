"""`septet open`: the page, or a pull request, in a person's browser."""

import shlex
from typing import Annotated
from urllib.parse import unquote

from clients.cli import options as given
from clients.cli.browser import open_address, open_page, page_of
from clients.cli.options import option
from clients.cli.reply import CommandReply
from clients.cli.server import SERVER, Server
from clients.cli.wrapping import echo
from septet.contracts.pull_request_names import LOCAL_PULL
from septet.errors import UsageError
from septet.settings import load_settings


async def open_in_browser(
    order_id: given.AnyId = None,
    /,
    *,
    pull_request: Annotated[bool, option("--pr", help="Open its pull request instead of its page.")] = False,
    new_key: Annotated[
        bool, option("--new-key", help="Make a new key: old links end when `septet up` does.")
    ] = False,
    server: Server = SERVER,
) -> CommandReply:
    """Open the board, or a work order, in your browser."""
    operations = await server.connect()
    if pull_request and order_id is None:
        raise UsageError("--pr needs a work order.", remedy="Name it: septet open wo-42 --pr")
    task = await operations.orders.get(order_id) if order_id is not None else None
    if task is not None and pull_request:
        if not task.pr_url:
            raise UsageError(f"{order_id} has no pull request yet.", remedy=f"Watch it: septet watch {order_id}")
        if (pull := LOCAL_PULL.fullmatch(task.pr_url)) is not None:
            see = f"septet pr show {pull['number']} --repo {shlex.quote(unquote(pull['path']))}"
            remedy = f"See it: {see}, or with its changes on the page of its work order: septet open {order_id}"
            message = f"The pull request of {order_id} is in a repository on this machine: no address opens it."
            raise UsageError(message, remedy=remedy)
        open_address(task.pr_url)
        return CommandReply({"opened": task.pr_url}, lambda: echo(f"Opened {task.pr_url}"))
    link = page_of(load_settings(), f"/work-orders/{order_id}" if order_id is not None else "/", new_key=new_key)
    open_page(operations.state, link)
    address = link.partition("?")[0]
    return CommandReply({"opened": address}, lambda: echo(f"Opened {address}"))
