"""axe-core in a tab: the barriers of a page for people, as far as a program can find them."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

_SCRIPT = Path(__file__).parents[1] / "npm" / "node_modules" / "axe-core" / "axe.min.js"


def violations(page: Page) -> list[str]:
    assert _SCRIPT.exists(), "axe-core is missing: npm ci --prefix tests/npm"
    if page.evaluate("typeof axe === 'undefined'"):
        page.evaluate(_SCRIPT.read_text(encoding="utf-8") + "; 0")
    broken: list[dict[str, Any]] = page.evaluate("async () => (await axe.run(document)).violations")
    return [
        f"{page.url} {rule['id']}: {[(node['target'], node.get('failureSummary')) for node in rule['nodes'][:3]]}"
        for rule in broken
    ]
