"""The codec endpoint, which seals and opens payloads for Temporal's command line and web UI.

A request needs the API's token. A page of another site may use the endpoint only if the settings name exactly the
page's origin. The page's browser has no token to send, so the endpoint's address for the browser contains a key,
which is derived from the token.
"""

import hmac
import secrets
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from google.protobuf.json_format import MessageToJson, Parse, ParseError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from temporalio.api.common.v1 import Payloads

from clients.http.access import knows_token, refuse_strangers
from clients.http.problems import problem
from septet.contracts.seal import CODEC_PATH
from septet.errors import SeptetError
from workers.connection.payload_codec import SealingCodec

_LIMIT_BYTES: Final = 32 * 1024 * 1024
_OPERATIONS: Final = frozenset({"encode", "decode"})
_REMEDY: Final = (
    "Send `Authorization: Bearer TOKEN`, that of the API, or use the whole address that `septet serve` prints."
)


def codec_key(token: str) -> str:
    """Return the key in the codec address for browsers; the key gives access to the codec endpoint only."""
    return hmac.digest(token.encode(), b"codec", "sha256").hex()


def is_codec(path: str) -> bool:
    """Return whether a path is the codec endpoint's."""
    return path.startswith(f"{CODEC_PATH}/")


@dataclass(frozen=True, slots=True)
class CodecEndpoint:
    """An ASGI application that serves the codec endpoint, and passes all other requests to `app`."""

    app: ASGIApp
    codec: SealingCodec
    token: str | None = field(repr=False)
    """The API's token; `None` admits every program on this machine."""
    origins: tuple[str, ...] = ()
    """The origins of other sites whose pages may use the endpoint."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or not is_codec(scope["path"]):
            await self.app(scope, receive, send)
            return
        request = Request(scope, receive)
        response = self._refusal(request) or await transform(self.codec, request)
        if (origin := request.headers.get("origin", "")) in self.origins:
            response.headers.update({"Access-Control-Allow-Origin": origin, "Vary": "Origin"})
        await response(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        """Refuse a request without permission; also return the answer to a browser's preflight request."""
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
    """Seal or open the payloads of a request, and return them."""
    operation = request.url.path.rpartition("/")[2]
    if operation not in _OPERATIONS:
        return problem(HTTPStatus.NOT_FOUND, "NotFound", "There is no such path.", "Use /encode or /decode.")
    if request.method != "POST":
        return problem(
            HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", "Only POST is answered here.", "Use POST."
        )
    try:
        payloads = Parse(await _body(request), Payloads())
        done = await (codec.encode if operation == "encode" else codec.decode)(payloads.payloads)
    except (ParseError, ValueError) as error:
        return problem(
            HTTPStatus.BAD_REQUEST, "InvalidInput", f"These are not payloads: {error}.", "Send Temporal's JSON."
        )
    except SeptetError as error:
        return problem(
            HTTPStatus.BAD_REQUEST, type(error).__name__.removesuffix("Error"), error.message, error.remedy
        )
    except ClientDisconnect:
        return Response()
    return Response(MessageToJson(Payloads(payloads=done)), media_type="application/json")


async def _body(request: Request) -> bytes:
    """Return the body.

    Raises:
        ValueError: The body is too large.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LIMIT_BYTES:
            message = f"the body holds more than {_LIMIT_BYTES} bytes"
            raise ValueError(message)
    return body
