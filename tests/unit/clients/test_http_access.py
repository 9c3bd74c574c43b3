"""The requests that the HTTP API accepts, and its answers to wrong requests."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import httpx
import pytest
from fakes.unreached import FullDisk, full_disk, unreached
from starlette.routing import BaseRoute
from starlette.types import Message, Receive, Scope, Send

from clients.error_reply import error_reply
from clients.http.access import Guard
from clients.http.app import ApiChoices, api_of
from clients.operations.operations import Operations

ORDERS = "/agent-work-orders"
POSTS = (ORDERS, *(f"{ORDERS}/wo-1/{name}" for name in ("move", "approve", "reject", "cancel", "retry", "prompt")))
OWN = "http://127.0.0.1:8888"


async def api(state: Path) -> httpx.AsyncClient:
    """Return a client of the API in this process, without a token and without a Temporal server."""
    return client_of(await unreached(state))


def client_of(operations: Operations) -> httpx.AsyncClient:
    """Return a client of the API in this process, without a token."""
    app = api_of(operations, None)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=OWN)


@pytest.mark.parametrize("path", POSTS)
async def test_a_body_that_does_not_say_that_it_is_json_is_refused(path: str, tmp_path: Path) -> None:
    """A body of another type is refused with 415 before it is read, and OpenAPI describes the answer."""
    async with await api(tmp_path) as client:
        for said in ("text/plain", "application/x-www-form-urlencoded", ""):
            answer = await client.post(path, content=b"{}", headers={"Content-Type": said} if said else {})
            assert answer.status_code == 415, answer.text
            assert answer.json()["type"] == "urn:septet:error:UnsupportedMediaType"
        described = (await client.get("/openapi.json")).json()["paths"]
        assert "415" in described[path.replace("wo-1", "{order_id}")]["post"]["responses"]
        answer = await client.post(
            path, content=b"[]", headers={"Content-Type": "Application/JSON; charset=utf-8"}
        )
        assert answer.status_code == 422, answer.text


async def test_a_body_whose_sender_goes_away_is_not_acted_on() -> None:
    """A request whose connection ends inside the body reaches no route."""
    reached: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del receive, send
        reached.append(scope["path"])

    coming: list[Message] = [
        {"type": "http.disconnect"},
        {"type": "http.request", "body": b"", "more_body": True},
    ]

    async def receive() -> Message:
        return coming.pop()

    async def send(message: Message) -> None:
        raise AssertionError(message)

    headers = [(b"host", b"localhost"), (b"content-length", b"80"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": f"{ORDERS}/wo-1/approve", "headers": headers}
    await Guard(app, None)(scope, receive, send)
    assert (reached, coming) == ([], [])


@pytest.mark.parametrize("path", POSTS)
async def test_a_page_of_another_site_decides_nothing(path: str, tmp_path: Path) -> None:
    """Without a token, a POST from another site or port is refused with 403, and the page's own is accepted."""
    async with await api(tmp_path) as client:
        for headers in (
            {"Origin": "https://evil.example"},
            {"Origin": "http://localhost.evil.example:8888"},
            {"Origin": "http://127.0.0.1@evil.example"},
            {"Origin": "null"},
            {"Origin": "http://127.0.0.1:5173"},
            {"Origin": "http://localhost:8888"},
            {"Origin": "https://127.0.0.1:8888"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Origin": OWN, "Sec-Fetch-Site": "cross-site"},
        ):
            answer = await client.post(path, headers=headers)
            assert answer.status_code == 403, answer.text
            assert answer.json()["type"] == "urn:septet:error:Forbidden"
            assert (await client.get("/openapi.json", headers=headers)).status_code == 200
        for host in ("127.0.0.1:8888", "localhost:8888", "[::1]:8888"):
            own = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
            answer = await client.post(path, content=b"[]", headers=own)
            assert answer.status_code == 415, answer.text
        described = (await client.get("/openapi.json")).json()["paths"]
        assert "403" in described[path.replace("wo-1", "{order_id}")]["post"]["responses"]


async def test_whatever_acts_is_behind_the_same_door(tmp_path: Path) -> None:
    """Each route that changes something needs the token or the page's key, this host, and no foreign page.

    Routes of webhooks need a signature instead, which `acceptance/test_intake.py` checks.
    """
    app = api_of(await unreached(tmp_path), "token", ApiChoices(page_key="page-key"))
    acting = sorted(
        {(method, path) for method, path in _acting_routes(app.routes) if not path.startswith("/webhooks/")}
    )
    assert {path for _, path in acting} >= {*(path.replace("wo-1", "x") for path in POSTS), "/mcp"}
    known = {"Authorization": "Bearer token", "Cookie": "septet-8888=page-key"}
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=OWN) as client:
        for method, path in acting:
            for refused, headers in (
                (401, {}),
                (401, {"Authorization": "Bearer another"}),
                (401, {"Origin": OWN, "Cookie": "septet-8888=another"}),
                (403, {**known, "Origin": "https://evil.example"}),
                (403, {**known, "Origin": "http://127.0.0.1:5173"}),
                (403, {**known, "Sec-Fetch-Site": "cross-site"}),
                (421, {**known, "Host": "evil.example:8888"}),
            ):
                answer = await client.request(method, path, headers=headers)
                assert answer.status_code == refused, (method, path, headers, answer.text)


@pytest.mark.parametrize("path", ["/health", "/", "/webhooks/github", ORDERS])
async def test_a_request_with_two_hosts_is_refused(path: str, tmp_path: Path) -> None:
    """A request with two hosts is refused, because a proxy and the routes could choose different ones."""
    transport = httpx.ASGITransport(api_of(await unreached(tmp_path), None), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=OWN) as client:
        for hosts in (("127.0.0.1:8888", "evil.example"), ("evil.example", "127.0.0.1:8888"), ("localhost",) * 2):
            answer = await client.get(path, headers=[("Host", host) for host in hosts])
            assert (answer.status_code, answer.json()["type"]) == (400, "urn:septet:error:BadRequest")


def _acting_routes(routes: Iterable[BaseRoute]) -> Iterator[tuple[str, str]]:
    """Return method and path of each route that may change something, with `x` for its parameters."""
    for route in routes:
        own = getattr(route, "routes", None) or getattr(getattr(route, "original_router", None), "routes", None)
        if own:
            yield from _acting_routes(own)
            continue
        path = re.sub(r"{[^}]*}", "x", getattr(route, "path", ""))
        methods = getattr(route, "methods", None) or {"POST", "PUT", "PATCH", "DELETE"}
        yield from ((method, path) for method in methods if method not in {"GET", "HEAD", "OPTIONS"})


async def test_what_the_machine_refuses_is_told_as_every_face_tells_it(tmp_path: Path) -> None:
    """A full disk is a 500 problem with the file, cause and remedy, and the page shows the same text."""
    asked = await unreached(tmp_path)
    full = FullDisk(asked.orders, asked.state, asked.git_env)
    words = error_reply(full_disk()).error
    async with client_of(full) as client:
        answer = await client.get("/board")
        said = answer.json()
        assert (answer.status_code, said["type"]) == (500, "urn:septet:error:MachineFailed")
        assert (said["detail"], said["remedy"]) == (words.message, words.remedy)
        page = await client.get("/")
        assert page.status_code == 503
        assert words.message in page.text
        assert words.remedy in page.text
