"""`septet open`: show the page, or a pull request, in the person's browser."""

import html
import shlex
import webbrowser
from urllib.parse import unquote, urlsplit

from clients.cli.terminal.output import echo
from clients.cli.terminal.reply import CommandReply
from clients.cli.watch.options import OpenOptions
from clients.page.key import api_token, page_host, page_link
from septet.contracts.names import LOCAL_PULL
from septet.errors import NotFoundError, UsageError
from septet.settings import Settings, load_settings
from septet.state import StateDir
from septet.system.durable import write_atomically
from workers.server.server_file import read_server_file


def page_of(settings: Settings, path: str, *, new_key: bool = False) -> str:
    """Return the link to a page of this host, with the key that opens the page.

    With `new_key`, make a new key; the old key still opens the page until `septet up` ends.

    Raises:
        NotFoundError: No `septet up` of this state directory serves a page.
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


async def open_in_browser(options: OpenOptions) -> CommandReply:
    """Open the board, or a work order, in your browser."""
    operations = await options.server.connect()
    if options.pull_request and options.order_id is None:
        raise UsageError("--pr needs a work order.", remedy="Name it: septet open wo-42 --pr")
    task = await operations.orders.get(options.order_id) if options.order_id is not None else None
    if task is not None and options.pull_request:
        if not task.pr_url:
            message = f"{options.order_id} has no pull request yet."
            raise UsageError(message, remedy=f"Watch it: septet watch {options.order_id}")
        if (pull := LOCAL_PULL.fullmatch(task.pr_url)) is not None:
            see = f"septet pr show {pull['number']} --repo {shlex.quote(unquote(pull['path']))}"
            page = f"or with its changes on the page of its work order: septet open {options.order_id}"
            where = "is in a repository on this machine: no address opens it."
            raise UsageError(f"The pull request of {options.order_id} {where}", remedy=f"See it: {see}, {page}")
        open_address(task.pr_url)
        return CommandReply({"opened": task.pr_url}, lambda: echo(f"Opened {task.pr_url}"))
    path = f"/work-orders/{options.order_id}" if options.order_id is not None else "/"
    link = page_of(load_settings(), path, new_key=options.new_key)
    open_page(operations.state, link)
    address = link.partition("?")[0]
    return CommandReply({"opened": address}, lambda: echo(f"Opened {address}"))


def open_page(state: StateDir, link: str) -> None:
    """Open `link` by way of a file, because other users could read the link's key in a browser's arguments.

    Raises:
        NotFoundError: This machine has no browser.
    """
    leads = f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(link)}">'
    write_atomically(state.page_file, leads.encode())
    open_address(state.page_file.absolute().as_uri(), link=link)


def open_address(address: str, *, link: str = "") -> None:
    """Open an address in the browser that `BROWSER` names, else in the desktop's browser.

    If there is no browser, the error shows `link`, by default `address`.

    Raises:
        NotFoundError: This machine has no browser.
    """
    if not webbrowser.open(address):
        raise NotFoundError("This machine has no browser.", remedy=f"Open this address in one: {link or address}")
