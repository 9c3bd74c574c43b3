"""List what an image consists of, as JSON: packages of its Debian, of its Python environments and of its agents.

It runs inside of the image, by the image's own Python, and reads files only: scripts/image-bom.
"""

import json
import sys
from importlib.metadata import PackageMetadata, distributions
from pathlib import Path

STATUS = Path("/var/lib/dpkg/status")
RELEASE = Path("/etc/os-release")
AGENTS = Path("/opt/agents")
PYTHONS = ("/opt/septet/lib", "/usr/local/lib")
FIELDS = ("Package", "Version", "Architecture", "Source")


def main() -> None:
    """Print the list."""
    told = {"distribution": distribution(), "debian": debian(), "python": python(), "npm": npm()}
    json.dump(told, sys.stdout, indent=1, sort_keys=True)


def distribution() -> str:
    """Return the name and version of the distribution, such as `debian-12`."""
    lines = RELEASE.read_text(encoding="utf-8").splitlines() if RELEASE.is_file() else []
    facts = dict(line.replace('"', "").split("=", 1) for line in lines if "=" in line)
    return f"{facts.get('ID', 'linux')}-{facts.get('VERSION_ID', 'unknown')}"


def debian() -> list[dict[str, str]]:
    """Return the packages that dpkg has installed."""
    found = []
    text = STATUS.read_text(encoding="utf-8", errors="replace") if STATUS.is_file() else ""
    for paragraph in text.split("\n\n"):
        facts = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
        if facts.get("Status", "").endswith(" installed"):
            found.append({name.lower(): facts[name] for name in FIELDS if name in facts})
    return sorted(found, key=lambda each: each["package"])


def python() -> list[dict[str, str]]:
    """Return the packages of all Python environments of the image, each name and version once."""
    folders = {str(path) for root in PYTHONS for path in Path(root).glob("python3*/site-packages")}
    found = {}
    for each in distributions(path=sorted(folders | set(sys.path))):
        about = each.metadata
        found[str(about["Name"]), each.version] = {
            "package": about["Name"],
            "version": each.version,
            "licence": licence_of(about),
        }
    return [found[key] for key in sorted(found)]


def licence_of(about: PackageMetadata) -> str:
    """Return the licence that a package names: as an expression, in the field of before, or by its classifiers."""
    expression, older = ((about.get_all(field) or [""])[0] for field in ("License-Expression", "License"))
    classifiers = [each for each in about.get_all("Classifier") or () if each.startswith("License")]
    whole_text = "\n" in older
    return (
        expression
        or ("" if whole_text else older)
        or ", ".join(each.rpartition(" :: ")[2] for each in classifiers)
    )


def npm(agents: Path = AGENTS) -> list[dict[str, str]]:
    """Return the packages of the agents' CLIs, and those below them."""
    found = {}
    for file in (*agents.glob("*/package.json"), *agents.glob("**/node_modules/**/package.json")):
        try:
            about = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if (
            isinstance(about, dict)
            and isinstance(about.get("name"), str)
            and isinstance(about.get("version"), str)
        ):
            licence = about.get("license")
            facts = {"package": about["name"], "version": about["version"]}
            found[about["name"], about["version"]] = {
                **facts,
                "licence": licence if isinstance(licence, str) else "",
            }
    return [found[key] for key in sorted(found)]


if __name__ == "__main__":
    main()
