"""Write an in-toto statement of a build: its files, its commit and its lock files.

python scripts/write_statement.py dist
"""

import hashlib
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STATEMENT = "https://in-toto.io/Statement/v1"
PROVENANCE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:septet:make-dist:1"
PRODUCTS = ("*.whl", "*.tar.gz", "*.cdx.json")


def main(folder: Path) -> None:
    """Write `septet.intoto.json` beside the products of a build.

    Raises:
        SystemExit: The folder holds no wheel.
    """
    products = sorted(file for pattern in PRODUCTS for file in folder.glob(pattern))
    if not any(file.suffix == ".whl" for file in products):
        sys.exit(f"{folder} holds no wheel: run `make dist` first.")
    (folder / "septet.intoto.json").write_text(json.dumps(statement(products), indent=2) + "\n", encoding="utf-8")


def statement(products: list[Path]) -> dict[str, Any]:
    """Return the statement about these files, in the form of in-toto and SLSA."""
    commit = git("rev-parse", "HEAD")
    locks = sorted(ROOT.glob("requirements*.lock"))
    return {
        "_type": STATEMENT,
        "subject": [{"name": file.name, "digest": {"sha256": sha256(file)}} for file in products],
        "predicateType": PROVENANCE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"command": ["make", "dist"]},
                "internalParameters": {
                    "python": platform.python_version(),
                    "changed": bool(git("status", "--porcelain")),
                },
                "resolvedDependencies": [
                    {"name": "septet", "digest": {"gitCommit": commit}},
                    *({"name": lock.name, "digest": {"sha256": sha256(lock)}} for lock in locks),
                ],
            },
            "runDetails": {"builder": {"id": "urn:septet:local-machine:1"}},
        },
    }


def sha256(file: Path) -> str:
    """Return a file's SHA-256 as hexadecimal digits."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def git(*arguments: str) -> str:
    """Return the output of git in the checkout, without the line's end."""
    argv = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
