"""Print the link to the page, or open it in the person's browser."""

import html
import sys
import webbrowser

from clients.cli.terminal.output import echo
from septet.errors import NotFoundError
from septet.state import StateDir
from septet.system.durable import write_atomically

_HINT = "If Safari does not find that name, put 127.0.0.1 in its place."


def show_page_link(page: str) -> None:
    """Print the link to the page, with a hint if a browser may not find names below `localhost`."""
    for line in page_link_lines(page, sys.platform):
        echo(line)


def page_link_lines(page: str, platform: str) -> list[str]:
    """Return the lines to print; `platform` is a value of `sys.platform`."""
    return [f"Open in your browser: {page}", *([_HINT] if platform == "darwin" else [])]


def open_page(state: StateDir, link: str) -> None:
    """Open a link with a key through a file, because other users can read a browser's arguments.

    Raises:
        NotFoundError: This machine has no browser.
    """
    leads = f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(link)}">'
    write_atomically(state.page_file, leads.encode())
    open_address(state.page_file.absolute().as_uri(), link=link)


def open_address(address: str, *, link: str = "") -> None:
    """Open an address in the browser that `BROWSER` names, else in the desktop's browser.

    `link` is the address for the person if no browser exists; by default `address`.

    Raises:
        NotFoundError: This machine has no browser.
    """
    if not webbrowser.open(address):
        raise NotFoundError("This machine has no browser.", remedy=f"Open this address in one: {link or address}")
