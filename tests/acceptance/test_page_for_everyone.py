import json
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal

import pytest
from fakes.browser import tab_of
from fakes.repositories import Origin, make_origin
from fakes.septet_command import Septet
from playwright.sync_api import Browser, Page, expect

from clients.page.rendering import static_file

pytestmark = pytest.mark.faces

Scheme = Literal["light", "dark"]
_SCRIPT = Path(__file__).parents[1] / "npm" / "node_modules" / "axe-core" / "axe.min.js"
OWN_SCRIPT_BYTES = 10_000
NOT_THERE = "status of 4"
PAGES = {
    "board": "/",
    "empty board": "/?project=nobody",
    "new": "/new",
    "completed": "/work-orders/wo-done",
    "waiting": "/work-orders/wo-axe-gate",
    "failed": "/work-orders/wo-axe-failed",
    "cancelled": "/work-orders/wo-axe-cancelled",
    "running": "/work-orders/wo-axe-running",
    "looks like a key": "/work-orders/wo-axe-found",
    "budget used up": "/work-orders/wo-axe-budget",
    "pipelines": "/pipeline",
    "pipeline": "/pipeline/pl-axe",
    "not there": "/work-orders/wo-nobody",
}
REFUSE = {"steps": {"implement_plan": {"refuse": "No."}}}


def violations(page: Page) -> list[str]:
    assert _SCRIPT.exists(), "axe-core is missing: npm ci --prefix tests/npm"
    if page.evaluate("typeof axe === 'undefined'"):
        page.evaluate(_SCRIPT.read_text(encoding="utf-8") + "; 0")
    broken: list[dict[str, Any]] = page.evaluate("async () => (await axe.run(document)).violations")
    return [
        f"{page.url} {rule['id']}: {[(node['target'], node.get('failureSummary')) for node in rule['nodes'][:3]]}"
        for rule in broken
    ]


@pytest.fixture(scope="session")
def axed(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    origin = make_origin(tmp_path_factory.mktemp("axe"), "app.git")
    origin.push({"README.md": "# app\n", "app.py": "print('hello')\n"})
    return origin


def run(served: Septet, axed: Origin, order: str, *more: str) -> None:
    about = ("--title", f"This is {order}", "--body", "Do it.", "--project", "axe")
    served("run", "--repo", axed.bare, *about, "--id", order, "--json", *more)


@pytest.fixture(scope="session")
def gate(served: Septet, axed: Origin) -> Iterator[str]:
    order = "wo-axe-gate"
    run(served, axed, order, "--approve-plan")
    served.wait_for_order(order, "waiting")
    yield order
    served.cancelled(order)


@pytest.fixture(scope="session")
def failed_pipeline(served: Septet, axed: Origin, tmp_path_factory: pytest.TempPathFactory) -> str:
    served.scenario("pl-axe-executor-1", REFUSE)
    issues = tmp_path_factory.mktemp("pipeline") / "issues.json"
    issues.write_text(json.dumps([{"id": "a", "title": "Fails", "body": "Do it."}]), encoding="utf-8")
    served("pipeline", "--repo", axed.bare, "--file", issues, "--id", "pl-axe", "--wait", "--json")
    return "pl-axe"


@pytest.fixture(scope="session")
def scene(served: Septet, axed: Origin, done: dict[str, Any], gate: str, failed_pipeline: str) -> Iterator[Septet]:
    never = {"steps": {"implement_plan": {"wait_for": str(served.root / "never")}}}
    served.scenario("wo-axe-failed", REFUSE)
    served.scenario("wo-axe-cancelled", never)
    served.scenario("wo-axe-running", never)
    token = "ghp_" + "Vb5dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE8kW1"
    served.scenario("wo-axe-found", {"steps": {"create_commit": {"edits": {"src/a.py": f"TOKEN = '{token}'\n"}}}})
    served.scenario("wo-axe-budget", {"cost_usd": 0.01})
    run(served, axed, "wo-axe-cancelled")
    run(served, axed, "wo-axe-running")
    run(served, axed, "wo-axe-found")
    run(served, axed, "wo-axe-budget", "--budget", "0.01usd")
    run(served, axed, "wo-axe-failed", "--wait")
    served.cancelled("wo-axe-cancelled")
    waiting = ("wo-axe-found", "wo-axe-budget")
    for order in waiting:
        served.wait_for_order(order, "waiting")
    yield served
    for order in ("wo-axe-running", *waiting):
        served.cancelled(order)


def open_all(page: Page) -> None:
    """Open every fold, so that the checks include its content."""
    page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.release)])
def test_axe_finds_nothing_on_any_page_in_any_state(browser: Browser, scene: Septet, scheme: Scheme) -> None:
    """Every page, in every state of its content, keeps axe-core's rules, has one h1, and fits every screen."""
    with tab_of(browser, scene, allowed=(NOT_THERE,)) as page:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        broken = []
        for path in PAGES.values():
            page.goto(path)
            expect(page.locator("h1")).to_have_count(1)
            open_all(page)
            broken += on_every_screen(page)
        page.goto("/")
        page.locator(".card button", has_text="Move").first.click()
        broken += on_every_screen(page)
    assert broken == []


def on_every_screen(page: Page) -> list[str]:
    """Return axe-core's findings on a phone and a laptop, and pages that are wider than these or a large screen."""
    broken = []
    for width in (390, 1280, 3840):
        page.set_viewport_size({"width": width, "height": 900})
        broken += violations(page) if width < 3840 else []
        if page.evaluate("document.documentElement.scrollWidth") > width:
            broken.append(f"{page.url} is wider than {width}")
    return broken


def test_a_browser_without_the_link_gets_a_page(browser: Browser, served: Septet) -> None:
    """A browser without the link gets a page with the next step, and this page keeps axe-core's rules too."""
    tab = browser.new_page(base_url=served.addresses["api"])
    answer = tab.goto("/work-orders/wo-done")
    assert answer is not None
    assert answer.status == HTTPStatus.UNAUTHORIZED
    expect(tab.locator("h1")).to_have_text("Sign-in link required")
    assert violations(tab) == []
    tab.close()


def test_what_needs_a_person_is_first(page: Page, gate: str) -> None:
    """The board begins with the work orders that wait for a person, with the reason, and its title counts them."""
    page.goto("/?project=axe")  # the first eight are listed: other tests have some, too
    inbox = page.locator(".inbox")
    row = inbox.locator("li", has=page.get_by_role("link", name=f"This is {gate}"))
    expect(row).to_contain_text("Waiting for you to approve the plan")
    count = int((inbox.locator(".count").text_content() or "0").strip())
    assert page.title().startswith(f"({count}) ")


def test_a_failed_pipeline_says_why_in_the_list(page: Page, failed_pipeline: str) -> None:
    """The list names the failed issue and the reason."""
    page.goto("/pipeline")
    row = page.locator("#pipelines .line", has=page.get_by_role("link", name=failed_pipeline, exact=True))
    expect(row.locator(".reason")).to_contain_text("Fails: ")


def test_the_keyboard_reaches_everything_that_a_pointer_does(page: Page, gate: str) -> None:
    """Each link, button and field of a waiting work order takes the focus."""
    page.goto(f"/work-orders/{gate}")
    reached = set[str]()
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.outerHTML.slice(0, 200)"))
    there = page.evaluate(
        """[...document.querySelectorAll("a[href], button, summary, textarea, input")]
            .filter((one) => one.checkVisibility()).map((one) => one.outerHTML.slice(0, 200))"""
    )
    assert set(there) - reached == set()


def test_a_notification_tells_what_needs_a_person(browser: Browser, served: Septet, tmp_path: Path) -> None:
    """After a person has turned notifications on, the browser shows each question once: plan, then budget."""
    origin = make_origin(tmp_path, "app.git")
    origin.push({"README.md": "# app\n"})
    with tab_of(browser, served) as page:
        page.context.grant_permissions(["notifications"])
        page.add_init_script(
            """window.told = [];
            window.Notification = class extends window.Notification {
                constructor(title, options) {
                    super(title, options);
                    this.addEventListener("show", () => window.told.push(options.body));
                }
            };"""
        )
        page.goto("/")
        page.get_by_role("button", name="Notify me").click()
        expect(page.get_by_role("button", name="Notifications on")).to_have_attribute("aria-pressed", "true")
        order = served.scenario("wo-page-tell", {"cost_usd": 0.01})
        budget = ("--step", "implement_plan.budget=0.01usd")
        served.start(origin, order, "--approve-plan", *budget, title="Tell me")
        plan = "Tell me: Waiting for you to approve the plan"
        page.wait_for_function("plan => window.told.join() === plan", arg=plan)
        assert served("approve", "wo-page-tell", "--json").code == 0
        page.wait_for_function("() => window.told.length === 2")
        first, second = page.evaluate("window.told")
        assert (first, "The budget of the step implement_plan is used up" in second) == (plan, True), second
    served.cancelled("wo-page-tell")


def test_the_pages_own_script_is_small() -> None:
    """The script has at most 10 KB, and script and style request from no other host."""
    assert len(static_file("page.js")) <= OWN_SCRIPT_BYTES
    for name in ("page.js", "page.css"):
        text = static_file(name).decode()
        assert [part for part in ("https://", "http://", "@import", "url(") if part in text] == [], name
