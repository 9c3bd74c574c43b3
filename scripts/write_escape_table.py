#!/usr/bin/env python3
"""Write the tables of attackers and of escape routes into docs/attacks.md."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fakes.attackers import attackers_table  # noqa: E402 -- after the path to it
from fakes.door_routes import door_table  # noqa: E402 -- after the path to it
from fakes.escape_routes import escape_table  # noqa: E402 -- after the path to it
from fakes.resource_routes import resource_table  # noqa: E402 -- after the path to it

PAGE = ROOT / "docs" / "attacks.md"
TABLES = {
    "attackers": attackers_table,
    "routes": escape_table,
    "resource routes": resource_table,
    "door routes": door_table,
}


def main() -> None:
    """Replace the tables between the page's marks."""
    text = PAGE.read_text(encoding="utf-8")
    for name, table in TABLES.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{table()}{end}{rest.partition(end)[2]}"
    PAGE.write_text(text, encoding="utf-8")


main()
