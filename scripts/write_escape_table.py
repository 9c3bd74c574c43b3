#!/usr/bin/env python3
"""Write the table of escape routes into docs/security.md."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fakes.escape_routes import escape_table  # noqa: E402 -- after the path to it

PAGE = ROOT / "docs" / "security.md"
BEGIN, END = "<!-- routes -->\n", "<!-- end of routes -->\n"


def main() -> None:
    """Replace what stands between the marks."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}{escape_table()}{END}{after}", encoding="utf-8")


main()
