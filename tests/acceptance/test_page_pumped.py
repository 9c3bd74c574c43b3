"""A page that shows a stranger's pumped-up diff: page and HTTP API answer other requests meanwhile."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import httpx
import pytest
from fakes.page import where
from fakes.repositories import Origin
from fakes.septet_command import WITHIN_SECONDS, Septet
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.faces

ORDER = "wo-page-pumped"
PUMPED = {"x.cpp": "a" + " " * 12_000 + "\n", "x.java": "using " + "a \n" * 1_900}
"""With pygments the first file kept the page and the API busy for 14 seconds."""


def slowest_answer(served: Septet, over: Event) -> float:
    """Request from the API and the page in turn until `over`; return the seconds of the slowest answer."""
    slowest = 0.0
    with served.api as api, httpx.Client(base_url=where(served)["api"], trust_env=False) as tab:
        tab.timeout, tab.follow_redirects = httpx.Timeout(WITHIN_SECONDS), True
        tab.get("/", params=httpx.URL(served.page).params).raise_for_status()
        while not over.is_set():
            for client, address in ((api, f"/agent-work-orders/{ORDER}"), (tab, "/")):
                began = time.monotonic()
                client.get(address).raise_for_status()
                slowest = max(slowest, time.monotonic() - began)
    return slowest


def test_the_page_and_the_api_answer_while_a_pumped_diff_is_looked_at(
    page: Page, served: Septet, origin: Origin
) -> None:
    """A line of 12,000 blanks is shown as it is; every other answer comes within a second."""
    served.scenario(ORDER, {"steps": {"implement_plan": {"edits": PUMPED}}})
    asked = ("run", "--repo", origin.bare, "--title", "Do it", "--id", ORDER, "--wait", "--json")
    ended = served(*asked)
    assert (ended.code, json.loads(ended.out)["task"]["status"]) == (0, "completed")
    over = Event()
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(slowest_answer, served, over)
        try:
            page.goto(f"/work-orders/{ORDER}")
            for path in PUMPED:
                expect(page.locator(f"[aria-label='Changes in {path}']")).to_be_attached()
            page.reload()
            assert PUMPED["x.cpp"] in (page.locator("[aria-label='Changes in x.cpp']").text_content() or "")
        finally:
            over.set()
        slowest = asking.result()
    assert slowest < 1.0
