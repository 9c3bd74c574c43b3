"""The findings of the scanner in the added lines of a patch. No key here is real or written as one string."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from fakes.compiled_scanner import shared_scanner
from fakes.processes import processes_with
from fakes.waiting import until

from septet.keys.scanner import MESSAGE, AddedLine, KeyScanner, read_added_lines
from septet.system.durable import hold_lock, lock_is_held

TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
PEM = (
    "-----BEGIN RSA PRIVATE " + "KEY-----",
    "MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gun",
    "VTLw7onLRnrq0/IzW7yWR7QkrmBL7jTKEn5u+qKhbwKfBstIs+bMY2Zkp18gnTxK",
    "-----END RSA PRIVATE " + "KEY-----",
)

_SCAN = (
    "import sys, pathlib; from septet.keys.scanner import AddedLine, KeyScanner; "
    "KeyScanner(pathlib.Path(sys.argv[1])).scan([AddedLine('a', 1, sys.argv[2].encode())])"
)


@pytest.fixture(scope="module")
def scanner() -> KeyScanner:
    return shared_scanner()


def lines_of(path: str, *texts: str, first: int = 1) -> list[AddedLine]:
    return [AddedLine(path, number, text.encode()) for number, text in enumerate(texts, first)]


def test_keys_are_found_by_file_line_and_rule(scanner: KeyScanner) -> None:
    """Tokens and private keys are found at their first line, also in a message and despite an ignore comment."""
    lines = [
        *lines_of("src/app.py", "import os", f"TOKEN = '{TOKEN}'  # kingfisher:ignore", first=40),
        *lines_of("deploy/key.pem", *PEM),
        *lines_of(MESSAGE, f"Use {TOKEN}"),
    ]
    found = [(match.line.path, match.line.number, match.rule) for match in scanner.scan(lines)]
    assert found == [
        ("src/app.py", 41, "github-pat"),
        ("deploy/key.pem", 1, "private-key"),
        (MESSAGE, 1, "github-pat"),
    ]


@pytest.mark.needs("Linux")
def test_a_scan_waits_for_the_rules_that_another_one_compiles(tmp_path: Path) -> None:
    """A scan waits for rules that another process compiles, since each process would compile the same rules."""
    scanner, lines = KeyScanner(tmp_path / "scanner"), lines_of("src/app.py", f"TOKEN = '{TOKEN}'")
    compiling = scanner.folder / "compiling"
    with subprocess.Popen([sys.executable, "-c", _SCAN, scanner.folder, lines[0].content]) as first:
        until(psutil.Process(first.pid).children)
        first.kill()
    assert lock_is_held(compiling)
    found = scanner.scan(lines)
    assert processes_with(str(scanner.folder / "rules")) == []
    with hold_lock(compiling):
        again = scanner.scan(lines)
    assert [match.rule for match in (*found, *again)] == ["github-pat"] * 2


def test_ordinary_work_is_not_stopped(scanner: KeyScanner) -> None:
    """Hashes, identifiers, placeholders, lock files and private keys among test data are no findings."""
    lines = [
        *lines_of("src/a.py", "password = os.environ['DB_PASSWORD']", "sha = '9b74c9897bac770ffc029102a200c5de0cafe123'"),
        *lines_of("README.md", "export GITHUB_TOKEN=<your token>", "token: ${{ secrets.GITHUB_TOKEN }}"),
        *lines_of("src/b.py", 'id = "5d1f0a52-8c3e-4a63-9d0a-6a0c3f7f9b1e"', "AWS = 'AKIAIOSFODNN7EXAMPLE'"),
        *lines_of("yarn.lock", f"resolved {TOKEN}"),
        *lines_of("requirements.lock", "    --hash=sha256:" + "9b74c9897bac770ffc029102a200c5de" * 2),
        *lines_of("tests/certs/server.pem", *PEM),
        *lines_of("app/login_test.go", 'password := "hunter2hunter2"'),
    ]  # fmt: skip
    assert scanner.scan(lines) == ()


def test_a_token_of_a_known_form_counts_in_test_data_too(scanner: KeyScanner) -> None:
    """A token with a provider's form is a finding even in test data."""
    (found,) = scanner.scan(lines_of("tests/test_login.py", f"TOKEN = '{TOKEN}'", first=7))
    assert (found.line.number, found.rule) == (7, "github-pat")


def test_without_a_candidate_nothing_is_started(tmp_path: Path) -> None:
    """A scan of lines in which no rule can match starts no process."""
    folder = tmp_path / "scanner"
    ordinary = ("def total(prices):", "See specs/issue-7-wo-1-planner-totals.md", "a" * 1_000_000, "token " * 9)
    assert KeyScanner(folder).scan(lines_of("src/app.py", *ordinary)) == ()
    assert not folder.exists()


def test_a_patch_is_read_line_by_line() -> None:
    """Each added line has its file and number, even if its content looks like a patch."""
    patch = b"\n".join((
        b"diff --git a.py a.py", b"--- a.py", b"+++ a.py", b"@@ -3 +3,2 @@ def f():", b"-old", b"+++ new",
        b"+two", b"diff --git b c.txt b c.txt", b"--- /dev/null", b"+++ b c.txt\t", b"@@ -0,0 +1 @@", b"+one",
        b"\\ No newline at end of file",
    ))  # fmt: skip
    assert [(line.path, line.number, line.content) for line in read_added_lines(patch, b"A message\n")] == [
        (MESSAGE, 1, b"A message"), ("a.py", 3, b"++ new"), ("a.py", 4, b"two"), ("b c.txt", 1, b"one"),
    ]  # fmt: skip
