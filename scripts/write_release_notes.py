"""Print the notes of a release: its section of CHANGELOG.md, and what it means for work orders that are running.

Usage: scripts/write_release_notes.py VERSION, or `Unreleased` for what the next one would say.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_SUPPORTED = 2
"""The number of releases whose work orders a release continues."""
_CONTINUES = (
    "Work orders that {began} began continue under this release: their recorded histories replay on it. "
    "Start workers of it beside the old ones, then run `septet promote`."
)
_BEGINS = (
    "No work order of an earlier release continues under this release: "
    "let the workers of that release finish their work orders first."
)
_PATCHES = (
    "Patches that this release brings. Once a running work order has one, `septet promote` does not go back to a "
    "build without it unless you use `--force`:"
)
_NO_PATCH = "This release brings no patch: you can go back to the release before at any time."


def release_notes(version: str, changes: str, patches: str, recorded: list[str]) -> str:
    """Return the notes as Markdown.

    Args:
        version: The release's, as its heading in the change log says it.
        changes: The text of the change log.
        patches: The text of docs/patches.md, with its table of patches.
        recorded: The releases whose recorded histories every commit replays.

    Raises:
        SystemExit: The change log has no such section.
    """
    section = re.search(
        rf"^## \[?{re.escape(version)}\]?[^\n]*\n(.*?)(?=^## |\Z)", changes, re.MULTILINE | re.DOTALL
    )
    if section is None:
        sys.exit(f"CHANGELOG.md has no section {version}.")
    released = re.findall(r"^## \[?([0-9.]+)", changes, re.MULTILINE)
    rows: list[tuple[str, str, str]] = re.findall(r"^\| `([^`]+)` \| ([0-9.]+) \| (.+) \|$", patches, re.MULTILINE)
    new = [
        f"- `{name}`: {text}."
        for name, since, text in rows
        if since == version or (version == "Unreleased" and since not in released)
    ]
    earlier = [each for each in recorded if each != version]
    began = " and ".join(sorted(earlier, key=_numbers)[-_SUPPORTED:])
    lines = [
        f"# Septet {version}",
        section[1].strip(),
        "## Workflow compatibility",
        _CONTINUES.format(began=began) if began else _BEGINS,
        _PATCHES if new else _NO_PATCH,
        "\n".join(new),
    ]
    return "\n\n".join(line for line in lines if line) + "\n"


def _numbers(release: str) -> list[int]:
    return [int(part) for part in release.split(".")]


def main() -> None:
    """Print the notes of the release in the command line."""
    if len(sys.argv) != 2:  # noqa: PLR2004 -- the program and one word
        sys.exit(__doc__)
    folders = (ROOT / "tests" / "replay" / "histories").iterdir()
    recorded = [path.name for path in folders if re.fullmatch(r"[0-9.]+", path.name)]
    changes, patches = ((ROOT / name).read_text(encoding="utf-8") for name in ("CHANGELOG.md", "docs/patches.md"))
    sys.stdout.write(release_notes(sys.argv[1], changes, patches, recorded))


if __name__ == "__main__":
    main()
