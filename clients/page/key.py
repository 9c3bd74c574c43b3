"""The page's key, made from the API's token: it opens the page alone, and does not tell the token."""

import hmac
from typing import Final
from urllib.parse import urlencode

_PURPOSE: Final = b"septet: the page"


def page_key(token: str) -> str:
    """Return the key that opens the page."""
    return derive(token, _PURPOSE)


def page_link(address: str, token: str | None) -> str:
    """Return the link to open in a browser; without a token there is nothing to prove."""
    return f"{address}/?{urlencode({'token': page_key(token)})}" if token is not None else f"{address}/"


def derive(token: str, purpose: bytes) -> str:
    """Return what only those can know who know the token."""
    return hmac.digest(token.encode(), purpose, "sha256").hex()
