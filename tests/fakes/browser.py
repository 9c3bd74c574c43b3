"""A real Chromium without a window, which connects only to the page under test."""

from collections.abc import Iterator
from contextlib import contextmanager

from fakes.needs import find_browser
from fakes.septet_command import WITHIN_SECONDS, Septet
from playwright.sync_api import Browser, Page, sync_playwright

_ARGUMENTS = (
    "--no-sandbox",  # Chromium runs as root in containers, and loads only this project's page
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    program = find_browser()
    assert program is not None, "There is no chromium on PATH: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


WITHIN_MS = WITHIN_SECONDS * 1000


@contextmanager
def tab_of(browser: Browser, served: Septet, *, allowed: tuple[str, ...] = ()) -> Iterator[Page]:
    """Yield a tab with the opened link, which connects only to its server, and logs no error but the `allowed`."""
    home = served.page.partition("/?")[0]
    context = browser.new_context(base_url=home, viewport={"width": 1280, "height": 800})
    context.set_default_timeout(WITHIN_MS)
    tab, trouble = context.new_page(), list[str]()
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    tab.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    own = (home, "data:")
    tab.on("request", lambda asked: trouble.append(asked.url) if not asked.url.startswith(own) else None)
    tab.goto(served.page)
    yield tab
    context.close()
    left = [words for words in trouble if not any(part in words for part in allowed)]
    assert left == [], left
