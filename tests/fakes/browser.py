"""A real Chromium without a window, which connects only to the page under test."""

from collections.abc import Iterator
from contextlib import contextmanager

from fakes.needs import find_browser
from playwright.sync_api import Browser, sync_playwright

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
