from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import pytest
from fakes.browser import tab_of
from fakes.repositories import Origin
from fakes.septet_command import WITHIN_SECONDS, Septet
from playwright.sync_api import Browser, Page, expect

from clients.page.key import deciding_key, looking_key
from septet.keys.scanner import AddedLine, KeyScanner
from septet.settings import load_settings
from septet.state import StateDir

pytestmark = pytest.mark.faces

REFUSED = "status of 4"
"""The browser console's line for a refusal, which the page shows in words."""


def waits_with_its_plan(served: Septet, origin: Origin, order: str) -> str:
    served.start(origin, order, "--approve-plan", title="Ask me first")
    served.wait_for_order(order, "waiting")
    return f"/work-orders/{order}"


def history_of(served: Septet, order: str) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = served("show", order, "--json").json["history"]
    return history


def test_a_plan_is_rejected_and_then_approved(page: Page, served: Septet, origin: Origin) -> None:
    """Feedback starts a new plan, a click approves the next plan; the history has the person and the words."""
    page.goto(waits_with_its_plan(served, origin, "wo-page-gate"))
    expect(page).to_have_title("(!) Ask me first · Septet")
    box = page.get_by_label("What the planner should do differently")
    approval = page.get_by_role("button", name="Approve plan")
    expect(approval).to_be_visible()
    box.fill("Say goodbye in French, too.")
    expect(approval).to_be_hidden()  # it would drop the written words
    page.get_by_role("button", name="Reject plan").click()
    expect(page.locator("#record")).to_contain_text("the plan is rejected: Say goodbye in French, too.")
    expect(page.locator("#record")).to_contain_text(load_settings().user)
    served.wait_for_order("wo-page-gate", "waiting")  # with its next plan
    page.get_by_role("button", name="Approve plan").click()
    expect(page.locator("#record")).to_contain_text("the plan is approved")
    words = [(move["who"], move["why"]) for move in history_of(served, "wo-page-gate")]
    assert (load_settings().user, "the plan is approved") in words
    served.cancelled("wo-page-gate")


@pytest.mark.timeout(300)  # the scanner compiles its rules first
def test_what_looks_like_a_key_is_taken_out_or_passes(page: Page, served: Septet, origin: Origin) -> None:
    """Only ticked findings pass, and the history has the person."""
    scanner = KeyScanner(StateDir(served.state).key_scanner)
    scanner.scan([AddedLine("a.py", 1, b"ghp_Rt4dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE6hU8")])  # compiles rules
    ends = ("Rt4dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE6hU8", "Mn6dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE7jV9")
    files = {f"src/{name}.py": f"TOKEN = 'ghp_{end}'\n" for name, end in zip("ab", ends, strict=True)}
    asked = ("wo-page-found", "--project", "found")
    order = served.start(origin, *asked, title="Log in", create_commit={"edits": files})
    served.wait_for_order(order, lambda task: task["findings"])
    page.goto("/?project=found")  # the first eight are listed: other tests have some, too
    inbox = page.locator(".inbox li", has=page.get_by_role("link", name="Log in"))
    expect(inbox).to_contain_text("Waiting for you to decide on what looks like a key")
    page.goto(f"/work-orders/{order}")
    first = page.get_by_label("src/a.py line 1")
    first.check()
    page.get_by_role("button", name="Allow what is ticked").click()
    expect(first).to_have_count(0)
    expect(page.locator("#overview .badge")).to_have_text("waiting")
    page.get_by_label("src/b.py line 1").check()
    page.get_by_role("button", name="Allow what is ticked").click()
    expect(page.locator("#overview .badge")).not_to_have_text("waiting")
    assert load_settings().user in {move["who"] for move in history_of(served, order)}
    served.cancelled(order)


def test_a_draft_and_the_focus_outlive_an_update(
    page: Page, served: Septet, origin: Origin, tmp_path: Path
) -> None:
    """A person's text, cursor and open folds stay while the page around them changes."""
    served.start(origin, "wo-page-draft", build_plan={"wait_for": str(tmp_path / "gate")})
    page.goto("/work-orders/wo-page-draft")
    expect(page.locator(".steps .now .name")).to_have_text("build_plan")
    page.locator(".actions summary", has_text="Cancel").click()
    why = page.locator("#cancel").get_by_label("Why")
    why.press_sequentially("not")
    page.locator(".steps summary").first.click()
    why.focus()
    served("move", "wo-page-draft", "blocked", "--why", "by another", "--json")
    expect(page.locator("#overview .badge")).to_have_text("failed")
    assert page.locator(".steps details").first.get_attribute("open") is not None


def test_its_work_is_restored_it_is_retried_from_a_chosen_step_and_cancelled_with_a_reason(
    browser: Browser, served: Septet, origin: Origin, tmp_path: Path
) -> None:
    """The rescue of a failed one is restored to a new folder, once, which the page names; the history has all words."""
    order = served.start(origin, "wo-page-end", implement_plan={"refuse": "No."})
    served.closed(order)
    served.scenario(order, {"steps": {"build_plan": {"wait_for": str(tmp_path / "never")}}})
    with tab_of(browser, served, allowed=(REFUSED,)) as page:
        page.goto(f"/work-orders/{order}")
        expect(page.locator("#overview .badge")).to_have_text("failed")
        row = page.locator("#record form", has_text="Restore").first
        row.get_by_role("button").click()
        expect(row.get_by_role("alert")).to_contain_text("Restored to ")
        folder = Path((row.get_by_role("alert").text_content() or "").removeprefix("Restored to "))
        assert (folder / "README.md").read_text(encoding="utf-8") == "# app\n"
        row.get_by_role("button").click()
        expect(row.get_by_role("alert")).to_contain_text("was already restored to ")
        page.locator(".actions summary", has_text="Retry").click()
        page.get_by_label("From").select_option("build_plan")
        page.get_by_label("What the agent should know").fill("It is allowed now.")
        page.get_by_role("button", name="Retry", exact=True).click()
        expect(page.locator(".steps .now .name")).to_have_text("build_plan")
        page.locator(".actions summary", has_text="Cancel").click()
        page.locator("#cancel").get_by_label("Why").fill("not wanted any more")
        page.get_by_role("button", name="Cancel work order").click()
        expect(page.locator("#overview .badge")).to_have_text("cancelled")
        expect(page.locator("#record")).to_contain_text("not wanted any more")
    assert "It is allowed now." in (served.state / "runs" / order / "2-build_plan-2" / "prompt.md").read_text()


def test_a_card_is_moved_by_drag_and_by_keyboard(page: Page, served: Septet, origin: Origin) -> None:
    """A card is moved by drag to a stage, or by keys alone; only allowed stages are offered."""
    for order in ("wo-page-drag", "wo-page-keys"):
        words = ("--title", f"Move {order}", "--id", order, "--json")
        assert served("create", "--repo", origin.bare, *words, "--stage", "collected").code == 0
    page.goto("/")
    dragged = page.locator("#card-wo-page-drag")
    dragged.drag_to(page.locator(".stage-blocked h2"))
    expect(page.locator(".stage-blocked #card-wo-page-drag")).to_be_visible()
    assert history_of(served, "wo-page-drag")[-1]["who"] == load_settings().user
    button = page.locator("#card-wo-page-keys").get_by_role("button", name="Move")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#mover select option")).to_have_text(["triaged", "blocked", "cancelled"])
    page.locator("#mover select").focus()
    page.keyboard.press("b")
    page.keyboard.press("Tab")
    page.keyboard.type("later")
    page.keyboard.press("Enter")
    expect(page.locator(".stage-blocked #card-wo-page-keys")).to_be_visible()
    assert history_of(served, "wo-page-keys")[-1]["why"].endswith("later")


def test_a_work_order_is_started_and_its_pull_request_is_merged(
    browser: Browser, served: Septet, origin: Origin
) -> None:
    """The form starts a work order and opens its page; a refusal appears at the form, and the typed text stays.

    At the end a click merges the pull request of a repository on disk, and the work order is done.
    """
    with tab_of(browser, served, allowed=(REFUSED,)) as page:
        page.get_by_role("navigation", name="Main").get_by_role("link", name="New work order").click()
        page.get_by_label("Repository").fill(str(origin.bare))
        page.get_by_label("After planning").select_option("implement it at once")
        page.get_by_role("button", name="Start work order").click()
        expect(page.get_by_role("alert")).to_contain_text("issue or title is missing")
        expect(page.get_by_label("Repository")).to_have_value(str(origin.bare))
        page.get_by_label("Title").fill("Started on the page")
        page.get_by_label("Description").fill("Say goodbye.")
        page.get_by_role("button", name="Start work order").click()
        expect(page.locator(".title h1")).to_have_text("Started on the page")
        expect(page.locator("#overview .badge")).to_have_text("review")
        page.get_by_role("button", name="Merge pull request").click()
        expect(page.locator("#overview .badge")).to_have_text("done")


@pytest.mark.parametrize("sent", ["nothing", "link", "cookie", "no origin", "another origin"])
def test_what_a_browser_hands_to_others_decides_nothing(served: Septet, sent: str) -> None:
    """The cookie, which other ports get, the link, and a page of another origin start nothing."""
    own = served.addresses["api"]
    key = served.page.rpartition("token=")[2]
    sent_keys = {"nothing": "", "link": key, "cookie": looking_key(key)}
    origins = {"no origin": {}, "another origin": {"Origin": "http://127.0.0.1:1"}}
    headers = {"Septet-Page-Key": sent_keys.get(sent, deciding_key(key)), **origins.get(sent, {"Origin": own})}
    with httpx.Client(base_url=own, trust_env=False, timeout=WITHIN_SECONDS) as client:
        client.get("/", params={"token": key})
        answer = client.post("/agent-work-orders", json={}, headers=headers)
    assert answer.status_code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}


def test_the_pages_key_decides_and_reads_nothing(served: Septet) -> None:
    """With the key and the page's own origin a decision is accepted; reads still need the token."""
    own, key = served.addresses["api"], deciding_key(served.page.rpartition("token=")[2])
    headers = {"Origin": own, "Septet-Page-Key": key}
    with httpx.Client(base_url=own, headers=headers, trust_env=False, timeout=WITHIN_SECONDS) as client:
        assert client.get("/agent-work-orders").status_code == HTTPStatus.UNAUTHORIZED
        answer = client.post("/agent-work-orders/wo-nobody/cancel", json={})
    assert answer.status_code == HTTPStatus.NOT_FOUND
