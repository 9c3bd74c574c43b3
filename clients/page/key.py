"""The API's token, and the keys that open the page.

The state directory keeps the key of the page's link, so a link works across restarts. `septet open --new-key`
makes another key. If other machines can reach the page, each start makes a new key.

Two keys are derived from the link's key. The looking key is in the cookie, and opens the page. The deciding key
permits decisions; the page's script keeps it, and no other port can read it. A browser sends a cookie to every
port of a host name. So the page has its own secret host name below `localhost`: browsers resolve all such names to
this machine.
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
    """Return the cookie's key, derived from the link's key; this key opens the page, but permits no decision."""
    return _made_of(key, b"look")


def deciding_key(key: str) -> str:
    """Return the key with which the page's script sends decisions; the key does not reveal the link's key."""
    return _made_of(key, b"decide")


def page_host(token: str | None) -> str:
    """Return the host name at which browsers find the page and Temporal's web UI, derived from the API's token.

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
    """Return the API's token, made on first use; `None` if the settings switch the token off.

    Raises:
        MachineFailedError: The token's file in the state directory is empty.
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
