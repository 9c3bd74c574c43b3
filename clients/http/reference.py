"""The API's description for people: Swagger UI from an installed package, without files of other sites."""

from http import HTTPStatus
from importlib.resources import files
from typing import Final

from fastapi import APIRouter, Response

PATH: Final = "/docs"
_HTML: Final = f"""\
<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width">
  <title>HTTP API · Septet</title>
  <link rel="icon" href="/static/septet.svg">
  <link rel="stylesheet" href="{PATH}/swagger-ui.css">
  <script src="{PATH}/swagger-ui-bundle.js" defer></script>
  <script src="{PATH}/start.js" defer></script>
</head>
<body><div id="reference"></div></body>
</html>
"""
_START: Final = """\
SwaggerUIBundle({ url: "/openapi.json", dom_id: "#reference", deepLinking: true, tryItOutEnabled: true });
"""
_VENDORED: Final = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
_HEADERS: Final = {
    # Swagger UI sets styles on its elements, and has its arrows as data.
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
PATHS: Final = frozenset({PATH, f"{PATH}/start.js", *(f"{PATH}/{name}" for name in _VENDORED)})
"""The paths of the reference, which show no work order. A request that a person tries there needs the token."""

router: Final = APIRouter(prefix=PATH, include_in_schema=False)


@router.get("")
async def show_reference() -> Response:
    """Show every path with what it takes and answers, and a form to try it."""
    return Response(_HTML, media_type="text/html", headers=_HEADERS)


@router.get("/{name}")
async def get_file(name: str) -> Response:
    """Send one of the files that the reference is made of."""
    if name == "start.js":
        return Response(_START, media_type="text/javascript", headers=_HEADERS)
    if name not in _VENDORED:
        return Response(status_code=HTTPStatus.NOT_FOUND, headers=_HEADERS)
    content = files("fastapi_offline").joinpath("static", name).read_bytes()
    return Response(content, media_type=_VENDORED[name], headers=_HEADERS)
