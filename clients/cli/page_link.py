"""The link to the page, as `septet up` and `septet serve` print it."""

import sys

from clients.cli.wrapping import echo

_HINT = "If Safari does not find that name, put 127.0.0.1 in its place."


def show_page_link(page: str) -> None:
    """Print the link and, where there is a browser that does not find names below `localhost`, what to do then."""
    for line in page_link_lines(page, sys.platform):
        echo(line)


def page_link_lines(page: str, platform: str) -> list[str]:
    """Return what is printed; `platform` is as `sys.platform` names it."""
    return [f"Open in your browser: {page}", *([_HINT] if platform == "darwin" else [])]
