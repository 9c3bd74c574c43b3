"""The page's keys: they open the page alone.

The state directory keeps the key, so that a link outlives its server; `septet open --new-key` makes another one. A
page that other machines reach has a new key with each start of its server.

The link carries the key. The cookie holds what is made from it for looking; a browser sends it to every port of
the same host name. So the page has a name of its own, which nobody is told but who has the link: browsers look
for all names below `localhost` on this machine. What decides is made from the key too, and is kept by the page's
script: no other port reads it.
"""

import hmac
import secrets
from typing import Final
from urllib.parse import urlencode

LOOPBACK: Final = "127.0.0.1"
_BYTES: Final = 32
_NAME_LENGTH: Final = 32


def new_page_key() -> str:
    """Return a key that nobody has seen before."""
    return secrets.token_hex(_BYTES)


def looking_key(key: str) -> str:
    """Return what the cookie holds: it opens the page, and decides nothing."""
    return _made_of(key, b"look")


def deciding_key(key: str) -> str:
    """Return what the page's script sends with each decision; who knows it cannot tell the link's key from it."""
    return _made_of(key, b"decide")


def page_host(token: str | None) -> str:
    """Return the name by which browsers call the page and Temporal's web UI, where the API has this token.

    It is the same after each start, as what a browser keeps belongs to a name.
    """
    if token is None:
        return LOOPBACK
    return f"septet-{_made_of(token, b'page host')[:_NAME_LENGTH]}.localhost"


def page_link(address: str, key: str | None, path: str = "/") -> str:
    """Return the link to open in a browser; without a key there is nothing to prove."""
    return f"{address}{path}?{urlencode({'token': key})}" if key is not None else f"{address}{path}"


def _made_of(key: str, purpose: bytes) -> str:
    return hmac.digest(key.encode(), purpose, "sha256").hex()
