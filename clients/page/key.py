"""The page's key: it opens the page alone, and is new with each start of a server."""

import secrets
from typing import Final
from urllib.parse import urlencode

_BYTES: Final = 32


def new_page_key() -> str:
    """Return a key that nobody has seen before; the one of the start before opens nothing any more."""
    return secrets.token_hex(_BYTES)


def page_link(address: str, key: str | None) -> str:
    """Return the link to open in a browser; without a key there is nothing to prove."""
    return f"{address}/?{urlencode({'token': key})}" if key is not None else f"{address}/"
