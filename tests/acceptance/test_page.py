import json
import re
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import pytest
from fakes.browser import WITHIN_MS
from fakes.repositories import Origin, make_origin
from fakes.septet_command import WITHIN_SECONDS, Septet, free_port
from playwright.sync_api import Browser, Page, expect

from clients.page.key import deciding_key
from septet.contracts.names import Step

pytestmark = pytest.mark.faces

Task = dict[str, Any]
MARKUP = "<script>window.hurt = 1</script><img src=x onerror='window.hurt = 2'> & [x](javascript:window.hurt=3)"


def token(served: Septet) -> str:
    return (served.state / "api-token").read_text(encoding="ascii").strip()


def key_of(served: Septet) -> str:
    return served.page.rpartition("token=")[2]


def test_the_board_shows_a_work_order_and_leads_to_it(page: Page, done: Task) -> None:
    """The link opens the board, and a card opens its work order with steps, plan, changes, transcript and history."""
    expect(page).to_have_url(f"{page.url.rstrip('/')}/")
    card = page.locator(".stage-review .card", has_text=done["id"])
    expect(card).to_contain_text("review")
    card.locator(".card-title").click()
    expect(page.locator(".title h1")).to_have_text("Say goodbye too")
    expect(page.locator(".steps .ok .name")).to_have_text([step.value for step in Step])
    expect(page.locator("#plan")).to_contain_text("Say goodbye too")
    expect(page.locator("#diff .files").get_by_role("link", name=done["plan_path"])).to_be_visible()
    expect(page.locator("#diff .added").first).to_be_visible()
    expect(page.locator("#transcript .tool_call").first).to_be_visible()
    expect(page.locator("#record")).to_contain_text("executing → review")
    expect(page.locator(".live")).to_have_count(0)


def test_markup_in_an_issue_is_words(page: Page, served: Septet, tmp_path: Path) -> None:
    """Script tags, handlers and script links in an issue, and in its plan, are shown as text."""
    origin = make_origin(tmp_path, "app.git")
    origin.push({"README.md": "# app\n"})
    words = ("--title", MARKUP, "--body", MARKUP, "--id", "wo-page-markup", "--plan-only", "--wait", "--json")
    ended = served("run", "--repo", origin.bare, *words)
    assert ended.code == 0, ended
    for path in ("/", "/work-orders/wo-page-markup"):
        page.goto(path)
        expect(page.get_by_text("wo-page-markup").first).to_be_visible()
        assert page.locator("main script, main img, main [onerror], main a[href^='javascript']").count() == 0
    expect(page.locator(".title h1")).to_have_text(MARKUP)
    expect(page.locator("#plan")).to_contain_text("<script>window.hurt = 1</script>")
    assert page.evaluate("window.hurt") is None


def test_a_policy_stops_what_is_not_the_pages_own(browser: Browser, served: Septet) -> None:
    """The content security policy stops a script even in markup that came through."""
    tab = browser.new_page()
    tab.goto(served.page, timeout=WITHIN_MS)
    stopped = tab.evaluate(
        """async () => {
            const told = new Promise((done) => addEventListener("securitypolicyviolation", done, { once: true }));
            document.body.insertAdjacentHTML("beforeend", "<b onclick='window.hurt = 1' id=mark></b>");
            document.getElementById("mark").click();
            return [(await told).effectiveDirective, window.hurt === undefined];
        }"""
    )
    tab.close()
    assert stopped == ["script-src-attr", True]


def test_the_reference_of_the_api_is_shown_without_a_network(page: Page, served: Septet) -> None:
    """The reference lists each path, requests only from its own server, and with the token a path can be tried."""
    page.goto("/docs")
    expect(page.get_by_text("/agent-work-orders/{order_id}/plan")).to_be_visible()
    page.get_by_role("button", name="Authorize").first.click()
    page.get_by_label("auth-bearer-value").fill(token(served))
    page.get_by_role("button", name="Apply credentials").click()
    page.get_by_role("button", name="Close").last.click()
    page.locator("#operations-health-health_health_get").click()
    page.get_by_role("button", name="Execute").click()
    expect(page.locator(".live-responses-table .response .response-col_status")).to_contain_text("200")


@pytest.fixture
def stranger(served: Septet) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.addresses["api"], trust_env=False, timeout=WITHIN_SECONDS) as client:
        yield client


def test_without_the_key_nothing_of_the_page_is_shown(stranger: httpx.Client, done: Task) -> None:
    """Without a key, or with a wrong key, the board, pipelines and live pages are refused."""
    pages = ("/", "/?token=guessed", f"/work-orders/{done['id']}/live", "/pipeline", "/pipeline/pl-page/live")
    for path in pages:
        assert stranger.get(path).status_code == HTTPStatus.UNAUTHORIZED, path


def test_the_key_opens_the_page_for_this_browser(served: Septet, stranger: httpx.Client) -> None:
    """The link sets a cookie for this site alone, which no script reads.

    It then leads to an address with the deciding key in the fragment, which browsers send to no server.
    """
    opened = stranger.get("/", params={"token": key_of(served)})
    decides = deciding_key(key_of(served))
    assert (opened.status_code, opened.headers["location"]) == (HTTPStatus.SEE_OTHER, f"/#key={decides}")
    cookie = opened.headers["set-cookie"]
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    for other in (token(served), key_of(served), decides):
        assert other not in cookie
    shown = stranger.get("/")
    assert shown.status_code == HTTPStatus.OK
    assert "script-src 'self'" in shown.headers["content-security-policy"]
    assert "unsafe" not in shown.headers["content-security-policy"]


def test_the_pages_key_opens_no_api(served: Septet, stranger: httpx.Client) -> None:
    """The API accepts neither the page's cookie nor its key."""
    key = key_of(served)
    stranger.get("/", params={"token": key})
    for headers in ({}, {"Authorization": f"Bearer {key}"}):
        assert stranger.get("/agent-work-orders", headers=headers).status_code == HTTPStatus.UNAUTHORIZED


def test_what_is_not_there_is_told_in_words(served: Septet) -> None:
    """An unknown id, a file outside the page's files and an impossible id return a 404."""
    with httpx.Client(base_url=served.addresses["api"], trust_env=False, timeout=WITHIN_SECONDS) as client:
        client.get("/", params={"token": key_of(served)})
        files = ("/static/door.py", "/static/..%2Fdoor.py", "/work-orders/%2E%2E/live")
        for path in ("/work-orders/wo-nobody", "/pipeline/pl-nobody", *files):
            assert client.get(path).status_code == HTTPStatus.NOT_FOUND, path
        assert "There is no work order wo-nobody." in client.get("/work-orders/wo-nobody").text


def test_a_pipeline_goes_on_without_a_reload(page: Page, served: Septet, origin: Origin, tmp_path: Path) -> None:
    """The page of a pipeline pauses it, resumes it and skips an issue, and shows each issue's progress and work order."""
    gate, issues = tmp_path / "gate", tmp_path / "issues.json"
    issues.write_text(
        json.dumps(
            [
                {"id": "a", "title": MARKUP, "body": "Once."},
                {"id": "b", "title": "Say goodbye", "body": "Too.", "depends_on": ["a"]},
                {"id": "c", "title": "Never", "body": "Not at all."},
            ]
        ),
        encoding="utf-8",
    )
    served.scenario("pl-page-executor-1", {"steps": {"implement_plan": {"wait_for": str(gate)}}})
    assert served("pipeline", "--repo", origin.bare, "--file", issues, "--id", "pl-page", "--json").code == 0
    page.get_by_role("link", name="Pipelines").click()
    row = page.locator("#pipelines .line", has=page.get_by_role("link", name="pl-page", exact=True))
    expect(row.locator(".badge")).to_have_text("running", timeout=WITHIN_MS)
    row.get_by_role("link", name="pl-page").click()
    page.evaluate("window.notReloaded = true")
    first, second, third = (page.locator(f"#issue-{name}") for name in "abc")
    expect(first.locator(".badge")).to_have_text("executing", timeout=WITHIN_MS)
    expect(third.locator(".badge")).to_have_text("planned", timeout=WITHIN_MS)
    state = page.locator("#pipeline .meta .badge").first
    page.get_by_role("button", name="Pause").click()
    expect(state).to_have_text("paused")
    page.get_by_role("button", name="Skip Never").click()
    expect(third.locator(".badge")).to_have_text("skipped", timeout=WITHIN_MS)
    page.get_by_role("button", name="Resume").click()
    expect(state).to_have_text("running")
    gate.touch()
    expect(second.locator(".badge")).to_have_text("completed", timeout=WITHIN_MS)
    expect(first.locator("td").nth(5)).to_have_text(re.compile("^[0-9a-f]{12}$"))
    expect(first).to_contain_text("specs/")
    expect(first).to_contain_text("pull/1")
    expect(page.locator(".live")).to_have_count(0, timeout=WITHIN_MS)
    assert page.evaluate("window.notReloaded")
    assert page.evaluate("window.hurt") is None
    page.get_by_role("link", name="Say goodbye").click()
    expect(page.locator(".title h1")).to_have_text("Say goodbye")


def test_the_link_opens_the_page_until_a_person_makes_another_key(septet: Septet) -> None:
    """The key stays valid at the page's next start; after `open --new-key` it is invalid from the next start on."""
    with septet.up() as first:
        old = first.ready["page"].rpartition("token=")[2]
        for expected in (HTTPStatus.SEE_OTHER, HTTPStatus.UNAUTHORIZED):
            with septet.beside("serve", "--port", str(free_port())) as again:
                answer = httpx.get(again.api, params={"token": old}, trust_env=False, timeout=WITHIN_SECONDS)
            assert answer.status_code == expected
            person = Septet(septet.root, {"BROWSER": "true"})
            assert person("open", "--new-key", "--json").code == 0
