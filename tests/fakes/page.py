"""The page in a browser: a tab that has opened the link, and that connects only to its own server."""

from collections.abc import Iterator
from contextlib import contextmanager

from fakes.septet_command import WITHIN_SECONDS, Septet
from playwright.sync_api import Browser, Page

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
