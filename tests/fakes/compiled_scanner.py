"""A scanner for keys whose rules are compiled once, for all processes and machines of a run of the tests."""

import os

import pytest

from septet.key_scan.scanner import KeyScanner
from septet.state import StateDir


def shared_scanner(factory: pytest.TempPathFactory) -> KeyScanner:
    """Return the scanner that all processes of this run share; its first scan compiles the rules, which takes seconds."""
    own = factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "key-scanner"
    folder.mkdir(mode=0o700, exist_ok=True)
    return KeyScanner(folder)


def lend_scanner(state: StateDir, scanner: KeyScanner) -> None:
    """Give a host on which nothing runs yet the rules of a scanner."""
    state.key_scanner.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    state.key_scanner.symlink_to(scanner.folder)
