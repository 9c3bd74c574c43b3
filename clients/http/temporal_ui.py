"""Relay Temporal's web UI to browsers that have opened the page, and decrypt sealed payloads for the UI.

The embedded server's UI admits every request under any host name. A page of another site could bind its own name
to this machine, and then read and end work orders. So the UI listens at a secret address, and browsers use this
relay. A request to the relay needs a Host header of this machine, and the page's cookie. A request that changes
something also needs the relay's origin.
"""

import hmac
import secrets
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import httpx
from google.protobuf.json_format import MessageToJson, Parse, ParseError
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from temporalio.api.common.v1 import Payloads

from clients.http.access import comes_from_another_site, knows_token, names_this_machine, refuse_strangers
from clients.http.problems import problem
from clients.page.access import cookie_name
from clients.page.key import looking_key
from septet.contracts.seal import CODEC_PATH
from septet.errors import SeptetError
from workers.connection.payload_codec import SealingCodec

_LIMIT_BYTES: Final = 32 * 1024 * 1024
_REMEDY: Final = (
    "Send `Authorization: Bearer TOKEN`, that of the API, or use the whole address that `septet serve` prints."
)


def codec_key(token: str) -> str:
    """Return the key in the codec endpoint's address for browsers; the key opens this endpoint only."""
    return hmac.digest(token.encode(), b"codec", "sha256").hex()


def is_codec(path: str) -> bool:
    """Return whether a path belongs to the codec endpoint."""
    return path.startswith(f"{CODEC_PATH}/")


@dataclass(frozen=True, slots=True)
class CodecEndpoint:
    """An ASGI application that serves the codec endpoint, and passes all other requests to `app`.

    A request needs the API's token, or a key that is derived from the token. Browsers have no token to send, so
    the endpoint's address for browsers contains the key. A page of another site may use the endpoint only if the
    settings name the page's exact origin.
    """

    app: ASGIApp
    codec: SealingCodec
    token: str | None = field(repr=False)
    """The API's token; `None` admits every program on this machine."""
    origins: tuple[str, ...] = ()
    """The origins of other sites whose pages may use the endpoint."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request to the codec endpoint, or pass the request on to `app`."""
        if scope["type"] != "http" or not is_codec(scope["path"]):
            await self.app(scope, receive, send)
            return
        request = Request(scope, receive)
        response = self._refusal(request) or await transform(self.codec, request)
        if (origin := request.headers.get("origin", "")) in self.origins:
            response.headers.update({"Access-Control-Allow-Origin": origin, "Vary": "Origin"})
        await response(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        """Return the error for a request without permission, or the answer to a preflight request; else `None`."""
        is_named = request.headers.get("origin") in self.origins
        if request.method == "OPTIONS" and is_named:
            return Response(status_code=HTTPStatus.NO_CONTENT, headers=_PREFLIGHT)
        remedy = "Name its origin in SEPTET_CODEC_ORIGINS."
        if refusal := refuse_strangers(request.headers, remedy, is_of_any_site=is_named):
            return refusal
        if self.token is not None and not self._is_known(self.token, request):
            detail = "The token is missing or wrong."
            return problem(HTTPStatus.UNAUTHORIZED, "Unauthorized", detail, _REMEDY)
        return None

    @staticmethod
    def _is_known(token: str, request: Request) -> bool:
        if knows_token(request.headers, token):
            return True
        key, _, operation = request.url.path.removeprefix(f"{CODEC_PATH}/").partition("/")
        is_key = secrets.compare_digest(key.encode(), codec_key(token).encode())
        return is_key and operation != "" and "/" not in operation


_PREFLIGHT: Final = {
    "Access-Control-Allow-Methods": "POST",
    "Access-Control-Allow-Headers": "authorization, content-type, x-namespace",
    "Access-Control-Allow-Private-Network": "true",
    "Access-Control-Max-Age": "600",
}


async def transform(codec: SealingCodec, request: Request) -> Response:
    """Encrypt or decrypt a request's payloads, as the request's path demands, and return the response."""
    operation = request.url.path.rpartition("/")[2]
    if operation not in {"encode", "decode"}:
        return problem(HTTPStatus.NOT_FOUND, "NotFound", "There is no such path.", "Use /encode or /decode.")
    if request.method != "POST":
        status, detail = HTTPStatus.METHOD_NOT_ALLOWED, "Only POST is answered here."
        return problem(status, "MethodNotAllowed", detail, "Use POST.")
    try:
        payloads = Parse(await _body(request), Payloads())
        done = await (codec.encode if operation == "encode" else codec.decode)(payloads.payloads)
    except (ParseError, ValueError) as error:
        detail = f"These are not payloads: {error}."
        return problem(HTTPStatus.BAD_REQUEST, "InvalidInput", detail, "Send Temporal's JSON.")
    except SeptetError as error:
        kind = type(error).__name__.removesuffix("Error")
        return problem(HTTPStatus.BAD_REQUEST, kind, error.message, error.remedy)
    except ClientDisconnect:
        return Response()
    return Response(MessageToJson(Payloads(payloads=done)), media_type="application/json")


async def _body(request: Request) -> bytes:
    """Return the body of a request; raise `ValueError` if the body is too large."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LIMIT_BYTES:
            raise ValueError(f"the body holds more than {_LIMIT_BYTES} bytes")
    return body


_HOP_BY_HOP: Final = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""The headers that concern only one connection, and that a relay does not pass on (RFC 9110)."""
_NOT_PASSED: Final = _HOP_BY_HOP | {"host", "cookie", "content-length"}
_CHANGES_NOTHING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_POLICIES: Final = {
    "X-Frame-Options": "SAMEORIGIN",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # links in a work order's text then do not send this name
}
_OWN_FRAMES: Final = "frame-ancestors 'self'"
"""The policy that forbids other origins to show the UI in a frame, because such a page could misdirect a click.
The UI's own pages show a work order's Markdown in a frame."""
_SIGN_IN: Final = (
    "Sign-in link required. Open the link that septet up printed at its last start, then reload this page.\n"
)


@dataclass(frozen=True, slots=True)
class Visitors:
    """Decides which browsers may see the UI: those with the cookie of the page."""

    page_port: int
    key: str | None = field(repr=False)
    """The page's key; `None` admits every browser of this machine."""

    def include(self, cookies: dict[str, str]) -> bool:
        """Return whether a browser with these cookies has opened the page."""
        if self.key is None:
            return True
        cookie = cookies.get(cookie_name(self.page_port), "")
        return hmac.compare_digest(cookie.encode(), looking_key(self.key).encode())


@dataclass(frozen=True, slots=True)
class UiRelay:
    """An ASGI application that passes visitors' requests on to the UI, and returns the UI's answers."""

    client: httpx.AsyncClient
    """The HTTP client with the UI's address; the client follows no redirect."""
    visitors: Visitors
    codec: SealingCodec | None = None
    """The codec that decrypts payloads for the UI; the UI calls the codec at the relay's address."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, encrypt or decrypt its payloads, or pass the request on to the UI."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        response = self._refusal(request)
        if response is None and self.codec is not None and is_codec(request.url.path):
            response = await transform(self.codec, request)
        response = response or await self._answer(request)
        await response(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        if not names_this_machine(request.headers):
            words = "The Host header names another host. Call it http://127.0.0.1 or http://localhost.\n"
            return PlainTextResponse(words, HTTPStatus.MISDIRECTED_REQUEST)
        if request.method not in _CHANGES_NOTHING and comes_from_another_site(request.headers):
            return PlainTextResponse("A page of another site sent this.\n", HTTPStatus.FORBIDDEN)
        if not self.visitors.include(request.cookies):
            return PlainTextResponse(_SIGN_IN, HTTPStatus.UNAUTHORIZED)
        return None

    async def _answer(self, request: Request) -> Response:
        own = cookie_name(self.visitors.page_port)
        cookies = "; ".join(f"{name}={value}" for name, value in request.cookies.items() if name != own)
        headers = [(name, value) for name, value in request.headers.items() if name not in _NOT_PASSED]
        headers += [("cookie", cookies)] if cookies else []
        headers += [] if "accept-encoding" in request.headers else [("accept-encoding", "identity")]
        relayed = self.client.build_request(
            request.method,
            httpx.URL(path=request.url.path, query=request.url.query.encode()),
            headers=headers,
            content=await request.body(),
        )
        try:
            answer = await self.client.send(relayed, stream=True)
        except httpx.HTTPError:
            words = "Temporal's web UI does not answer now. Reload this page in a few seconds.\n"
            return PlainTextResponse(words, HTTPStatus.BAD_GATEWAY)
        chunks, close = answer.aiter_raw(), BackgroundTask(answer.aclose)
        response = StreamingResponse(chunks, answer.status_code, background=close)
        returned = ((name.lower(), value) for name, value in answer.headers.raw)
        response.raw_headers = [each for each in returned if each[0].decode("latin-1") not in _HOP_BY_HOP]
        response.headers.update(_POLICIES)
        response.headers.append("Content-Security-Policy", _OWN_FRAMES)  # the UI's own policy holds too
        return response


def relay_client(host: str, port: int) -> httpx.AsyncClient:
    """Return an HTTP client for the UI at this address; proxies that the environment names are not used."""
    return httpx.AsyncClient(base_url=f"http://{host}:{port}", timeout=60.0, trust_env=False)
