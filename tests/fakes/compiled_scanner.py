"""A scanner for keys whose rules are compiled once, for all processes, machines and runs of the tests of this clone."""

import os
from pathlib import Path
from typing import Final

from septet.keys.scanner import KeyScanner
from septet.state import StateDir

_KEPT: Final = Path(__file__).parents[2] / ".pytest_cache" / "d"
"""Where pytest keeps what other runs may use."""


def shared_scanner() -> KeyScanner:
    """Return the scanner that all runs of a user share; its first scan compiles the rules, which takes seconds."""
    folder = _KEPT / f"key-scanner-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return KeyScanner(folder)


def lend_scanner(state: StateDir, scanner: KeyScanner) -> None:
    """Give a host on which nothing runs yet the rules of a scanner."""
    state.key_scanner.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    state.key_scanner.symlink_to(scanner.folder)
