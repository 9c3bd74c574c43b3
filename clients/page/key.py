"""The token of the API, and the page's keys, which open the page and nothing else.

The state directory keeps the link's key, so that a link outlives its server; `septet open --new-key` makes another
key. A page that other machines reach has a new key with each start of its server.

The link contains its key. The cookie contains the looking key, which is derived from the link's key. A browser
sends the cookie to every port of the same host name, so the page has its own host name, which only the link
reveals: browsers resolve all names below `localhost` to this machine. The deciding key is derived from the link's
key too. The page's script keeps the deciding key, which no other port can read.
"""

import hmac
import secrets
from typing import Final
from urllib.parse import urlencode

from septet.errors import MachineFailedError
from septet.settings import Settings
from septet.state import StateDir

LOOPBACK: Final = "127.0.0.1"
_NAME_LENGTH: Final = 32


def new_page_key() -> str:
    """Return a new random key for the page's link."""
    return secrets.token_hex(32)


def looking_key(key: str) -> str:
    """Return the cookie's key, which opens the page and permits no decision."""
    return _made_of(key, b"look")


def deciding_key(key: str) -> str:
    """Return the key that the page's script sends with each decision; this key does not reveal the link's key."""
    return _made_of(key, b"decide")


def page_host(token: str | None) -> str:
    """Return the host name of the page and Temporal's web UI for browsers, derived from the API's token.

    The name is the same after each start, because a browser stores data by host name.
    """
    if token is None:
        return LOOPBACK
    return f"septet-{_made_of(token, b'page host')[:_NAME_LENGTH]}.localhost"


def page_link(address: str, key: str | None, path: str = "/") -> str:
    """Return the link to open in a browser, which contains `key` unless `key` is `None`."""
    return f"{address}{path}?{urlencode({'token': key})}" if key is not None else f"{address}{path}"


def _made_of(key: str, purpose: bytes) -> str:
    return hmac.digest(key.encode(), purpose, "sha256").hex()


_OFF: Final = "none"


def api_token(settings: Settings) -> str | None:
    """Return the token that the API requires, made on first use; `None` if the setting switches the token off.

    Raises:
        MachineFailedError: The state directory's file exists and contains no token.
    """
    token = settings.api_token.get_secret_value() if settings.api_token is not None else ""
    if token:
        return None if token == _OFF else token
    state = StateDir(settings.state_dir)
    state.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    token = state.api_token()
    if not token:
        remedy = "Remove it: the next `septet serve` makes a new one."
        raise MachineFailedError(f"{state.api_token_file} is empty.", remedy=remedy)
    return token
