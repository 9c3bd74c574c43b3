"""A scanner for keys whose rules are compiled once, for all processes, machines and test runs of this clone."""

import os
from pathlib import Path
from typing import Final

from septet.keys.scanner import KeyScanner
from septet.state import StateDir

_KEPT: Final = Path(__file__).parents[2] / ".pytest_cache" / "d"


def shared_scanner() -> KeyScanner:
    """Return the scanner that a user's test runs share; its first scan compiles the rules for some seconds."""
    folder = _KEPT / f"key-scanner-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return KeyScanner(folder)


def lend_scanner(state: StateDir, scanner: KeyScanner) -> None:
    state.key_scanner.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    state.key_scanner.symlink_to(scanner.folder)
