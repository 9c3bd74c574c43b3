"""The doors of `septet up` against a page of another site, a foreign name for this machine, and another user."""

import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import ClassVar

import httpx
import psutil
import pytest
from fakes.browser import WITHIN_MS
from fakes.door_routes import DOOR_ROUTES
from fakes.listening import QuietHandler, listening
from fakes.septet_command import WITHIN_SECONDS, Septet
from playwright.sync_api import Browser

from clients.page.access import cookie_name
from clients.page.key import looking_key

pytestmark = pytest.mark.faces

ANOTHER_USER = 64_321
"""A user id without an account."""
WORKFLOWS = "/api/v1/namespaces/default/workflows"
SENT = """async ([addresses]) => {
    const answers = [];
    for (const address of addresses) {
        for (const mode of ["no-cors", "cors"]) {
            for (const type of ["text/plain", "application/json"]) {
                try {
                    const answer = await fetch(address, {
                        method: "POST", mode, credentials: "include", body: "{}", headers: { "Content-Type": type },
                    });
                    answers.push(answer.status);
                } catch (error) {
                    answers.push(String(error));
                }
            }
        }
        try {
            answers.push((await (await fetch(address, { credentials: "include" })).text()).length);
        } catch (error) {
            answers.push(String(error));
        }
    }
    return answers;
}"""
"""The requests of a page of another site; 0 is the status of an answer that the page may not see."""
READ = """
import os, sys
os.setgroups([]); os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))
for name in sys.argv[2:]:
    try:
        print(name, len(open(name, "rb").read()))
    except OSError as error:
        print(name, type(error).__name__)
"""
"""A read of files as another user."""


class _OpenServer(QuietHandler):
    """A server of this machine without protection, which accepts each request."""

    taken: ClassVar[list[str]] = []

    def handle_any(self) -> None:
        self.taken.append(self.path)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(200, {})


class _Elsewhere(QuietHandler):
    """A page of another program of this machine, which records the cookies that it gets."""

    cookies: ClassVar[list[str]] = []

    def handle_any(self) -> None:
        self.cookies.append(self.headers.get("Cookie", ""))
        self.answer(200, {"Content-Type": "text/html"}, b"<!doctype html><title>Elsewhere</title>")


@pytest.fixture
def elsewhere() -> Iterator[int]:
    """Serve a foreign page on a loopback port, and return the port."""
    _Elsewhere.cookies.clear()
    yield from _port_of(_Elsewhere)


@pytest.fixture
def open_server() -> Iterator[int]:
    _OpenServer.taken.clear()
    yield from _port_of(_OpenServer)


def _port_of(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    with listening(handler) as address:
        yield int(address.rpartition(":")[2])


def ui_of(served: Septet) -> httpx.Client:
    """Return a client of Temporal's web UI without the page's cookie; it needs no resolution of the page's name."""
    address = httpx.URL(served.addresses["ui"]).copy_with(host="127.0.0.1")
    return httpx.Client(base_url=address, trust_env=False, timeout=WITHIN_SECONDS)


def cookies_of(served: Septet) -> dict[str, str]:
    port = int(served.addresses["api"].rpartition(":")[2])
    return {cookie_name(port): looking_key(served.page.rpartition("token=")[2])}


def test_temporals_ui_is_for_those_who_have_opened_the_page(served: Septet) -> None:
    """Without the page's cookie the UI answers 401 and names the link; with the cookie it answers normally."""
    with ui_of(served) as client:
        for path in ("/", WORKFLOWS, "/_app/version.json"):
            refused = client.get(path)
            assert (refused.status_code, "Open the link that septet up printed" in refused.text) == (401, True)
        wrong = dict.fromkeys(cookies_of(served), "0" * 64)
        assert client.get(WORKFLOWS, headers={"Cookie": _cookie(wrong)}).status_code == 401
        shown = client.get(WORKFLOWS, headers={"Cookie": _cookie(cookies_of(served))})
        assert shown.status_code == 200, shown.text
        assert "executions" in shown.json() or shown.json() == {}


def test_temporals_ui_answers_to_the_name_of_this_machine_alone(served: Septet) -> None:
    """A request under a foreign name is refused, also with the cookie."""
    with ui_of(served) as client:
        for host in ("evil.example", "evil.example:8233", "127.0.0.1.evil.example"):
            headers = {"Cookie": _cookie(cookies_of(served)), "Host": host}
            assert client.get(WORKFLOWS, headers=headers).status_code == 421


def test_temporals_ui_is_framed_by_its_own_pages_alone(served: Septet) -> None:
    """The UI's frame for Markdown keeps the UI's policy, and only the UI's own pages may frame it."""
    with ui_of(served) as client:
        headers = {"Cookie": _cookie(cookies_of(served))}
        answer = client.get("/render", params={"content": "| a |\n| - |"}, headers=headers)
    policies = answer.headers.get_list("content-security-policy")
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"
    assert "frame-ancestors 'self'" in policies
    assert any("default-src 'none'" in policy for policy in policies)


def test_temporals_ui_changes_nothing_for_a_page_of_another_site(served: Septet) -> None:
    """A request that acts has the UI's own origin, or none, like a program's request."""
    path = f"{WORKFLOWS}/wo-none/terminate"
    with ui_of(served) as client:
        for headers in (
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Origin": served.addresses["api"]},
            {"Sec-Fetch-Site": "cross-site"},
        ):
            known = {"Cookie": _cookie(cookies_of(served)), **headers}
            assert client.post(path, headers=known, json={}).status_code == 403


def test_the_server_itself_answers_no_browser(served: Septet) -> None:
    """Each listening port except the UI's speaks gRPC or refuses; the UI listens on a hidden address."""
    server = psutil.Process(served.addresses["server_pid"])
    listening = {each.laddr for each in server.net_connections("tcp") if each.status == psutil.CONN_LISTEN}
    told = {int(served.addresses[name].rpartition(":")[2]) for name in ("ui", "api")}
    assert {address.port for address in listening}.isdisjoint(told)
    answers: dict[int, int | None] = {}
    for address in listening:
        if not _is_hidden(address.ip):
            try:
                asked = httpx.get(
                    f"http://127.0.0.1:{address.port}{WORKFLOWS}", trust_env=False, timeout=WITHIN_SECONDS
                )
            except httpx.RemoteProtocolError:  # gRPC
                answers[address.port] = None
            else:
                answers[address.port] = asked.status_code
    assert answers[int(served.addresses["address"].rpartition(":")[2])] is None
    assert 403 in answers.values(), "its HTTP API was not found"
    assert set(answers.values()) <= {None, 403, 404}
    hidden = [address.ip for address in listening if _is_hidden(address.ip)]
    assert len(hidden) == 1 or sys.platform != "linux"


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_page_of_another_site_starts_and_sees_nothing(
    browser: Browser, served: Septet, elsewhere: int, name: str
) -> None:
    """In a browser that has opened our page, a page on another port of this machine starts no work order and reads none."""
    addresses = served.addresses
    before = len(served("list", "--json").json["tasks"])
    targets = [
        f"{addresses['api']}/agent-work-orders",
        f"{addresses['api']}/agent-work-orders/wo-done/cancel",
        f"{addresses['api']}/mcp",
        f"{addresses['ui']}{WORKFLOWS}/wo-other-site",
        f"http://{name}:{httpx.URL(addresses['ui']).port}{WORKFLOWS}/wo-other-site",
        f"http://{addresses['address']}{WORKFLOWS}/wo-other-site",
    ]
    context = browser.new_context()
    context.set_default_timeout(WITHIN_MS)
    tab = context.new_page()
    tab.goto(served.page)
    tab.goto(f"http://{name}:{elsewhere}/")
    seen = tab.evaluate(SENT, [targets])
    context.close()
    assert len(seen) == 5 * len(targets)
    assert {answer for answer in seen if answer != 0 and "Failed to fetch" not in str(answer)} == set()
    assert len(served("list", "--json").json["tasks"]) == before


def lured(browser: Browser, served: Septet, address: str) -> str:
    """Return the cookies that a browser with our page and Temporal's UI open sends to another program."""
    context = browser.new_context()
    context.set_default_timeout(WITHIN_MS)
    tab = context.new_page()
    for opened in (served.page, served.addresses["ui"]):
        answer = tab.goto(opened)
        assert answer is not None
        assert answer.ok
    tab.goto(address)
    tab.evaluate("fetch('/again').then((answer) => answer.text())")
    context.close()
    assert len(_Elsewhere.cookies) > 1
    return "; ".join(_Elsewhere.cookies)


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "septet.localhost"])
def test_another_port_of_this_machine_gets_no_key_of_the_page(
    browser: Browser, served: Septet, elsewhere: int, name: str
) -> None:
    """A program on another port gets no cookie of ours under any name that it can know."""
    assert "septet-" not in lured(browser, served, f"http://{name}:{elsewhere}/")


@pytest.mark.needs("chromium")
def test_who_knows_the_pages_own_name_is_sent_its_key(browser: Browser, served: Septet, elsewhere: int) -> None:
    """A browser binds cookies to names, not to ports: only the secret name of the page protects the cookie."""
    name = httpx.URL(served.page).host
    sent = lured(browser, served, f"http://{name}:{elsewhere}/")
    assert looking_key(served.page.rpartition("token=")[2]) in sent


@pytest.mark.needs("IPv6")
def test_the_name_of_the_page_leads_to_us_by_every_address(served: Septet) -> None:
    """A browser tries IPv6's loopback first: another user who listened on it would get the key."""
    addresses = served.addresses
    for opened in (served.page, addresses["ui"]):
        url = httpx.URL(opened)
        answer = httpx.get(f"http://[::1]:{url.port}/", trust_env=False, timeout=WITHIN_SECONDS)
        assert answer.status_code == 401


def read_by_another_user(names: list[Path]) -> list[str]:
    """Return for each file its size, or the error of a read by another user."""
    argv = [sys.executable, "-I", "-S", "-c", READ, str(ANOTHER_USER), *map(str, names)]
    seen = subprocess.run(argv, capture_output=True, text=True, check=True, cwd="/", timeout=WITHIN_SECONDS)
    return seen.stdout.split()[1::2]


@pytest.mark.needs("root")
def test_another_user_reads_no_key_and_no_work(served: Septet, tmp_path: Path) -> None:
    """The state directory is closed to other users, and so is each file in it."""
    names = [served.state / "api-token", served.state / "server.json", served.state / "temporal.db"]
    assert read_by_another_user(names) == ["PermissionError"] * len(names)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in names}
    assert modes == {"api-token": 0o600, "server.json": 0o600, "temporal.db": 0o600}
    assert stat.S_IMODE(served.state.stat().st_mode) == 0o700


def _is_hidden(ip: str) -> bool:
    return ip.startswith("127.") and ip != "127.0.0.1"


def _cookie(cookies: dict[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_server_that_asks_nobody_lets_that_page_in(
    browser: Browser, elsewhere: int, open_server: int, name: str
) -> None:
    """The requests of the other site's page arrive at a server without doors: so our doors stop them."""
    context = browser.new_context()
    context.set_default_timeout(WITHIN_MS)
    tab = context.new_page()
    tab.goto(f"http://{name}:{elsewhere}/")
    paths = ["/agent-work-orders", "/agent-work-orders/wo-done/cancel", "/mcp", f"{WORKFLOWS}/wo-other-site"]
    tab.evaluate(SENT, [[f"http://127.0.0.1:{open_server}{path}" for path in paths]])
    context.close()
    assert set(_OpenServer.taken) == set(paths)


@pytest.mark.needs("root")
def test_files_that_are_open_tell_that_user_all(served: Septet, tmp_path: Path) -> None:
    """With usual modes in an open folder, the same read succeeds: so the modes protect the files."""
    folder = Path(tempfile.mkdtemp(prefix="septet-open-"))
    try:
        folder.chmod(0o755)
        names = [
            Path(shutil.copy(served.state / name, folder)) for name in ("api-token", "server.json", "temporal.db")
        ]
        for name in names:
            name.chmod(0o644)
        sizes = [int(size) for size in read_by_another_user(names)]
    finally:
        shutil.rmtree(folder)
    assert (len(sizes), 0 in sizes) == (len(names), False)


def test_each_door_has_its_test_and_counter_test() -> None:
    """The tests that the document's table of doors names are in this file."""
    assert {name for route in DOOR_ROUTES for name in route.tests} <= set(globals())
