"""Pages in a person's browser."""

import webbrowser

from clients.operations import Operations
from septet.errors import NotFoundError
from workers.server_file import read_server_file


def page_of(operations: Operations, order_id: str) -> str:
    """Return the address of a work order's page on this host.

    Raises:
        NotFoundError: No `septet up` of this state directory serves one.
    """
    server = read_server_file(operations.state)
    if server is None or server.api is None or not server.is_held:
        remedy = f"Start it with septet up, or see the work order here: septet show {order_id}"
        raise NotFoundError(
            "`septet up` is not running for this state directory, so there is no page.", remedy=remedy
        )
    return f"{server.api}/work-orders/{order_id}"


def open_address(address: str) -> None:
    """Open an address in the browser that `BROWSER` names, else the desktop's.

    Raises:
        NotFoundError: There is no browser.
    """
    if not webbrowser.open(address):
        raise NotFoundError("This machine has no browser.", remedy=f"Open this address in one: {address}")
