"""Check the size, token, Host header and origin of each HTTP request, and mask keys in all answers."""

import secrets
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from fastapi.responses import Response
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clients.http import reference
from clients.http.problems import problem
from clients.http.webhooks import WEBHOOK_LIMIT_BYTES, is_webhook
from clients.page.access import DECIDING_KEY_HEADER, is_page, missing_page
from septet.system.masking import hidden_values, mask_bytes, mask_json

BODY_LIMIT_BYTES: Final = 256 * 1024
"""The most bytes of a body: four times the longest text of an issue, because escapes in JSON lengthen texts."""
_DROPPED_BYTES: Final = 16 * BODY_LIMIT_BYTES
OPEN_PATHS: Final = frozenset({"/health", "/openapi.json"}) | reference.PATHS
"""The paths that need no token, because they show no work order."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Checks each request to the API, and refuses pages of other sites, and programs without the token."""

    app: ASGIApp
    token: str | None
    """The API's token; `None` admits every program on this machine."""
    deciding_key: str | None = None
    """The page's key for decisions; with this key, a request from the page's own origin needs no token."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        limit_bytes = WEBHOOK_LIMIT_BYTES if is_webhook(scope["path"]) else BODY_LIMIT_BYTES
        try:
            body = await _body(headers, receive, limit_bytes)
        except ClientDisconnect:
            return
        refusal = self._refusal(scope["method"], scope["path"], headers)
        if refusal is not None:
            await refusal(scope, receive, send)
        elif body is None:
            remedy = "Put long texts into an issue of the forge or a file of the repository, and name it."
            detail = f"The body holds more than {limit_bytes} bytes."
            status, close = HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"Connection": "close"}
            await problem(status, "ContentTooLarge", detail, remedy, headers=close)(scope, receive, send)
        else:
            await self.app(scope, _receive_body(body, receive), send)

    def _refusal(self, method: str, path: str, headers: Headers) -> Response | None:
        """Return the error for a request that must not pass; `None` for a good request.

        A site can bind its own name to this machine, so the Host header is checked. Pages of other sites can send
        requests, although they cannot read the answers, so the origin is checked too.
        """
        if len(headers.getlist("host")) > 1:  # a proxy and this server may read different ones
            return problem(HTTPStatus.BAD_REQUEST, "BadRequest", "There are several Host headers.", "Send one.")
        if is_webhook(path):  # its signature is checked, which no page of another site can make
            return None
        changes = method not in {"GET", "HEAD", "OPTIONS"}
        remedy = "Send it from this machine, not from a page."
        if refusal := refuse_strangers(headers, remedy, is_of_any_site=not changes):
            return refusal
        if (
            self.token is None
            or path in OPEN_PATHS
            or is_page(path)
            or knows_token(headers, self.token)
            or (method == "POST" and self._is_own_page(headers))
        ):
            return None
        if "authorization" not in headers and (page := missing_page(method, headers.get("accept", ""))):
            return page
        remedy = (
            "Send `Authorization: Bearer TOKEN`, with the token from the file `api-token` in the server's "
            "SEPTET_STATE_DIR, or from its SEPTET_API_TOKEN if that is set."
        )
        detail, challenge = "The token is missing or wrong.", {"WWW-Authenticate": "Bearer"}
        return problem(HTTPStatus.UNAUTHORIZED, "Unauthorized", detail, remedy, headers=challenge)

    def _is_own_page(self, headers: Headers) -> bool:
        """Return whether the page's script sent the request: with the page's origin and the key for decisions."""
        key = headers.get(DECIDING_KEY_HEADER, "")
        known = self.deciding_key is not None and secrets.compare_digest(key.encode(), self.deciding_key.encode())
        return known and "origin" in headers and not comes_from_another_site(headers)


def refuse_strangers(headers: Headers, remedy: str, *, is_of_any_site: bool) -> Response | None:
    """Return the error if the Host header is foreign or, unless `is_of_any_site`, another site is the sender."""
    if not names_this_machine(headers):
        detail, call = "The Host header names another host.", "Call it http://127.0.0.1 or http://localhost."
        return problem(HTTPStatus.MISDIRECTED_REQUEST, "MisdirectedRequest", detail, call)
    if not is_of_any_site and comes_from_another_site(headers):
        return problem(HTTPStatus.FORBIDDEN, "Forbidden", "A page of another site sent this.", remedy)
    return None


def knows_token(headers: Headers, token: str) -> bool:
    """Return whether a request has the API's token."""
    scheme, _, word = headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and secrets.compare_digest(word.strip().encode(), token.encode())


def names_this_machine(headers: Headers) -> bool:
    """Return whether the Host header is a name of this machine that no other site can have.

    Another site can bind its own name to loopback, but not a name below `localhost` (RFC 6761).
    """
    host = headers.get("host", "")
    without_port, _, port = host.rpartition(":")
    name = (without_port if port.isdigit() else host).lower()
    return name in {"localhost", "127.0.0.1", "[::1]"} or name.endswith(".localhost")


def comes_from_another_site(headers: Headers) -> bool:
    """Return whether a browser reports that another site's page sent the request.

    A sandboxed page has the origin `null`; programs send no origin. A page on another port of this machine counts
    as another site.
    """
    origin = headers.get("origin")
    foreign = origin is not None and origin.lower() != f"http://{headers.get('host', '')}".lower()
    return foreign or headers.get("sec-fetch-site", "").lower() == "cross-site"


async def _body(headers: Headers, receive: Receive, limit_bytes: int) -> bytes | None:
    """Return a request's body; `None` if the body is larger than the limit.

    Some bytes above the limit are read and dropped, because a client reads no answer until its body is sent.
    """
    if "content-length" not in headers and "transfer-encoding" not in headers:
        return b""
    body, size, more = b"", 0, True
    while more and size < _DROPPED_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        body += chunk if size <= limit_bytes else b""
        more = message.get("more_body", False)
    return body if size <= limit_bytes else None


def _receive_body(body: bytes, receive: Receive) -> Receive:
    """Return an ASGI `receive` function that first returns the body, and then calls `receive`."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_next() -> Message:
        return messages.pop() if messages else await receive()

    return receive_next


class MaskedAnswers:
    """Masks keys in all answers of an ASGI application."""

    def __init__(self, app: ASGIApp) -> None:
        """Set the application whose answers are masked."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, and mask keys in the answer."""
        if scope["type"] == "http" and hidden_values():
            send = _Masking(send).send
        await self._app(scope, receive, send)


class _Masking:
    """Masks one answer. The headers are sent with the body's first part, because masking may change the length."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._head: Message | None = None
        self._is_json = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._head = message
            types = (value for name, value in message["headers"] if name.lower() == b"content-type")
            self._is_json = any(b"json" in value for value in types)
            return
        if message["type"] == "http.response.body":
            is_whole = self._head is not None and not message.get("more_body", False)
            mask = mask_json if is_whole and self._is_json else mask_bytes
            message = {**message, "body": mask(message.get("body", b""))}
            await self._send_head(len(message["body"]) if is_whole else None)
        await self._send(message)

    async def _send_head(self, length: int | None) -> None:
        head, self._head = self._head, None
        if head is None:
            return
        kept = [(name, value) for name, value in head["headers"] if name.lower() != b"content-length"]
        if len(kept) < len(head["headers"]) and length is not None:
            kept.append((b"content-length", str(length).encode()))
        await self._send({**head, "headers": kept})
