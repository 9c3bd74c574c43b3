"""Links between the pages in docs/, README.md, CONTRIBUTING.md, SECURITY.md and CHANGELOG.md."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def _anchors(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_every_link_leads_to_a_file_and_a_heading_that_exist() -> None:
    """Each link in the documentation leads to an existing file and heading."""
    broken = []
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        text = page.read_text(encoding="utf-8")
        for link in LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "code", text, flags=re.DOTALL)):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in _anchors(target)):
                broken.append(f"{page.relative_to(ROOT)}: {link}")

    assert broken == []
