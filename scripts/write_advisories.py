"""Print one line for each advisory that pip-audit found; exit with 1 if there is one.

    python scripts/write_advisories.py audit.json

A package that the service does not know, or for which it gave no answer, counts as not checked.
"""

import json
import sys
from pathlib import Path
from typing import Any


def main(report: Path) -> int:
    """Print the lines of a report, and return the exit code."""
    try:
        packages = json.loads(report.read_bytes())["dependencies"]
    except ValueError:
        print("not checked: the service of advisories did not answer")
        return 0
    found = [line for package in packages for line in advisories(package)]
    skipped = sum("skip_reason" in package for package in packages)
    print(f"checked {len(packages) - skipped} packages, not checked {skipped}, advisories {len(found)}")
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


def advisories(package: dict[str, Any]) -> list[str]:
    """Return a line for each advisory against a package."""
    name = f"{package.get('name')} {package.get('version')}"
    return [
        f"{name}: {each['id']}, mended in {', '.join(each['fix_versions']) or 'no version'}"
        for each in package.get("vulns", ())
    ]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
