"""Where a list goes on, as one word: what the server said of it, and by what the word is known as ours."""

import base64
from hashlib import sha256
from typing import Final

from septet.errors import NotFoundError

_MARK_BYTES: Final = 6


def page_word(token: bytes) -> str | None:
    """Return the word for the server's own token; `None` where nothing goes on."""
    return base64.urlsafe_b64encode(_mark(token) + token).decode("ascii") if token else None


def page_token(word: str) -> bytes | None:
    """Return the server's token of a word; `None` for the empty word, which stands for the beginning.

    The server takes anything else for a failure of its own.

    Raises:
        NotFoundError: It is no word of ours.
    """
    if not word:
        return None
    try:
        told = base64.b64decode(word, altchars=b"-_", validate=True)
    except ValueError:
        told = b""
    mark, token = told[:_MARK_BYTES], told[_MARK_BYTES:]
    if not token or mark != _mark(token):
        message = f"No list goes on at {word[:80]!r}."
        raise NotFoundError(message, remedy="Give the `next` of the page before, as it was.")
    return token


def _mark(token: bytes) -> bytes:
    return sha256(token).digest()[:_MARK_BYTES]
