"""Admit to the page each browser that has opened the link of `septet up` or `septet serve`.

The link contains a key, from which two other keys are derived. The looking key is in the cookie, and permits no
decision. The page's script keeps the deciding key, and sends it with each decision; `clients/http/access.py`
checks it. No key reveals the API's token.
"""

import hmac
import html
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from clients.page.key import deciding_key, looking_key
from clients.page.rendering import HEADERS, render

DECIDING_KEY_HEADER: Final = "septet-page-key"
"""The header with which the page's script sends the deciding key. Pages of other origins cannot send this header,
because CORS is not allowed."""
_OPEN_PATHS: Final = "/static/"
"""The beginning of the paths that every browser may read; they show no work order."""


def is_page(path: str) -> bool:
    """Return whether a path belongs to the page, which `PageAccess` protects."""
    return path in {"/", "/live", "/live/pipelines", "/new", "/new/estimate", "/pipeline"} or path.startswith(
        ("/work-orders/", "/pipeline/", _OPEN_PATHS)
    )


def missing_page(method: str, accept: str) -> Response | None:
    """Return the HTML response for an unknown path; `None` for programs, which get JSON."""
    if method != "GET" or "text/html" not in accept:
        return None
    title, message = "There is no page here", "Check the address, or start from the board."
    remedy = "Programs call the HTTP API with the token from the file `api-token` in the state directory."
    response = render("refused.html", HTTPStatus.NOT_FOUND, title=title, message=message, remedy=remedy)
    response.headers.update(HEADERS)
    return response


@dataclass(frozen=True, slots=True)
class PageAccess:
    """Decides whether a browser may see the page: with the link's key, or with the cookie."""

    key: str | None
    """The link's key; `None` admits every browser of this machine."""

    def refusal(self, request: Request) -> Response | None:
        """Return the response that replaces the requested page; `None` if the browser may see the page."""
        if self.key is None or request.url.path.startswith(_OPEN_PATHS):
            return None
        token, cookie = request.query_params.get("token"), cookie_name(request.url.port or 80)
        if token is not None and _is_key(token, self.key):
            address = f"{request.url.path}#key={deciding_key(self.key)}"
            response: Response = RedirectResponse(address, HTTPStatus.SEE_OTHER)
            if request.headers.get("sec-fetch-site") == "cross-site":
                # A browser that comes from a file sends a strict cookie only after it loads a page from here.
                response = HTMLResponse(_GO_ON.format(address=html.escape(address)))
            response.set_cookie(
                cookie, looking_key(self.key), max_age=30 * 24 * 3600, httponly=True, samesite="strict", path="/"
            )
            return response
        if _is_key(request.cookies.get(cookie, ""), looking_key(self.key)):
            return None
        words = {
            "title": "Sign-in link required",
            "message": "Type septet open in a terminal, or open the link that septet up has printed.",
            "remedy": "If you have just come from there, reload this page.",
        }
        return render("refused.html", HTTPStatus.UNAUTHORIZED, **words)


_GO_ON: Final = '<!doctype html><meta http-equiv="refresh" content="0; url={address}">'


def cookie_name(port: int) -> str:
    """Return the name of the page's cookie; the name contains the port, because a cookie reaches all ports."""
    return f"septet-{port}"


def _is_key(text: str, key: str) -> bool:
    return hmac.compare_digest(text.encode(), key.encode())
