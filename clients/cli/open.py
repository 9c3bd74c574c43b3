"""`septet open`: the page, or a pull request, in a person's browser."""

import html
import shlex
import webbrowser
from typing import Annotated
from urllib.parse import unquote, urlsplit

from clients.api_token import api_token
from clients.cli import options as given
from clients.cli.options import option
from clients.cli.reply import CommandReply
from clients.cli.server import SERVER, Server
from clients.cli.wrapping import echo
from clients.page.key import page_host, page_link
from septet.contracts.pull_request import LOCAL_PULL
from septet.errors import NotFoundError, UsageError
from septet.settings import Settings, load_settings
from septet.state import StateDir
from septet.system.durable import write_atomically
from workers.server.server_file import read_server_file


def page_of(settings: Settings, path: str, *, new_key: bool = False) -> str:
    """Return the link to a page of this host; it has the key.

    Args:
        settings: Whose state directory and token count.
        path: Such as `/work-orders/wo-42`, or `/` for the board.
        new_key: Make another key first: the old one opens the page until its server ends.

    Raises:
        NotFoundError: No `septet up` of this state directory serves one.
    """
    state = StateDir(settings.state_dir)
    server = read_server_file(state)
    if server is None or server.api is None or not server.is_held:
        message = "`septet up` is not running for this state directory, so there is no page."
        raise NotFoundError(message, remedy="Start it with: septet up")
    if new_key:
        state.page_key_file.unlink(missing_ok=True)
    token = api_token(settings)
    address = f"http://{page_host(token)}:{urlsplit(server.api).port}"
    return page_link(address, state.page_key() if token is not None else None, path)


def open_page(state: StateDir, link: str) -> None:
    """Open a link that has a key in the person's browser, whose arguments other users of the machine can read.

    Raises:
        NotFoundError: There is no browser.
    """
    leads = f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(link)}">'
    write_atomically(state.page_file, leads.encode())
    open_address(state.page_file.absolute().as_uri(), link=link)


def open_address(address: str, *, link: str = "") -> None:
    """Open an address in the browser that `BROWSER` names, else the desktop's.

    Args:
        address: For the browser.
        link: For the person, where there is no browser; the address when empty.

    Raises:
        NotFoundError: There is no browser.
    """
    if not webbrowser.open(address):
        raise NotFoundError("This machine has no browser.", remedy=f"Open this address in one: {link or address}")


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
