"""A browser that opens an address several times, and prints the seconds until each first paint."""

import json
import sys

from fakes.browser import chromium

_PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
_TIMEOUT_MS = 60_000


def main(address: str, times: int) -> None:
    """Open the address, each time with an empty cache, and print the seconds as JSON."""
    seconds = []
    with chromium() as browser:
        for _ in range(times):
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.goto(address, timeout=_TIMEOUT_MS)
            page.wait_for_function(_PAINTED, timeout=_TIMEOUT_MS)
            seconds.append(float(page.evaluate(_PAINTED)) / 1000)
            page.close()
    print(json.dumps(seconds))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
