"""Pages in a person's browser."""

import html
import webbrowser
from urllib.parse import urlsplit

from clients.api_token import api_token
from clients.page.key import page_host, page_link
from septet.errors import NotFoundError
from septet.settings import Settings
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
