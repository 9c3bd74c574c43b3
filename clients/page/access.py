"""Who may see the page: a browser that has once opened the link that `septet up` and `septet serve` print.

The link and the cookie carry a key that is made from the API's token and opens nothing but this page, which
changes nothing. Neither tells the token.
"""

import hmac
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from clients.page.key import derive, page_key
from clients.page.rendering import render

_NAMED_BY: Final = b"septet: the page's cookie"
_KEPT_SECONDS: Final = 30 * 24 * 3600
_OPEN_PATHS: Final = "/static/"
"""What tells nothing of any work order."""


def is_page(path: str) -> bool:
    """Return whether a path is the page's, which has a door of its own."""
    return path in {"/", "/live", "/live/pipelines", "/pipeline"} or path.startswith(
        ("/work-orders/", "/pipeline/", _OPEN_PATHS)
    )


@dataclass(frozen=True, slots=True)
class PageAccess:
    """The door of the page."""

    token: str | None
    """The API's; `None`: everybody on this machine is let in."""

    def refusal(self, request: Request) -> Response | None:
        """Return what a browser gets instead of what it asked for; `None` lets it in."""
        if self.token is None or request.url.path.startswith(_OPEN_PATHS):
            return None
        key, token = page_key(self.token), request.query_params.get("token")
        if token is not None and _is_key(token, key):
            response = RedirectResponse(request.url.path, HTTPStatus.SEE_OTHER)
            response.set_cookie(
                self._cookie, key, max_age=_KEPT_SECONDS, httponly=True, samesite="strict", path="/"
            )
            return response
        if _is_key(request.cookies.get(self._cookie, ""), key):
            return None
        words = {
            "title": "This page wants its key",
            "message": "Open the link that septet up or septet serve printed when it started.",
            "remedy": "If you have just come from there, reload this page.",
        }
        return render("refused.html", HTTPStatus.UNAUTHORIZED, **words)

    @property
    def _cookie(self) -> str:
        """A name of its own: a browser gives the cookies of one port of this machine to all others too."""
        return f"septet-{derive(self.token or '', _NAMED_BY)[:8]}"


def _is_key(text: str, key: str) -> bool:
    return hmac.compare_digest(text.encode(), key.encode())
