"""The site that `make docs` builds."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
LOADED = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)")


def _build(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_every_page_is_in_the_navigation_and_is_linked_from_the_first_one() -> None:
    """The navigation and the first page link every page; decisions have their own list."""
    site = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    named = {
        page
        for part in site["project"]["nav"]
        for each in part.values()
        for page in each
        if isinstance(each, list)
    }
    docs = ROOT / "docs"
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md") if page.parent.name != "adr"}
    assert pages - named == {"index.md", "quickstart.md"}
    first = (docs / "index.md").read_text(encoding="utf-8")
    assert {page for page in named if f"]({page})" not in first} == set()


def test_the_site_loads_nothing_from_elsewhere_and_a_broken_link_fails_it(tmp_path: Path) -> None:
    """The site loads nothing from the network, and a broken link fails the build."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)

    built = _build(tmp_path)

    assert built.returncode == 0, built.stdout + built.stderr
    pages = list((tmp_path / "build" / "docs").glob("**/*.html"))
    assert {page.name for page in pages} >= {"index.html", "quickstart.html", "settings.html"}
    assert [found for page in pages for found in LOADED.findall(page.read_text(encoding="utf-8"))] == []

    with (tmp_path / "docs" / "index.md").open("a", encoding="utf-8") as index:
        index.write("\n[nowhere](settings.md#no-such-heading)\n")

    assert _build(tmp_path).returncode != 0
