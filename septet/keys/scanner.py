"""Scan added lines for text that looks like a key.

The scanner is the program Kingfisher from its maker's package. It reads all added lines as one text, without a
repository's environment and settings, and sends no network requests. Septet reports file, line and rule of a
finding, and uses the found value only for comparisons.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Final

from kingfisher import get_binary_path  # type: ignore[import-untyped]

from septet.errors import EvidenceError
from septet.system import processes
from septet.system.durable import hold_lock

_HUNK: Final = re.compile(rb"@@ -\d+(?:,\d+)? \+(?P<first>\d+)(?:,\d+)? @@")
_FILE: Final = b"diff --git "
_NAME: Final = b"+++ "
MESSAGE: Final = "(the commit's message)"
HEAD: Final = "(the commit's head)"
"""The paths that stand for a commit's message, and for its head with author and committer."""
NAME: Final = -1
"""The line number that means the path of a new file, because a path can contain a key too."""


@dataclass(frozen=True, slots=True)
class AddedLine:
    """One line that a patch or a commit's message adds."""

    path: str
    """The path relative to the repository's root, with `/`, as git shows it."""
    number: int
    """The number of the line in the new file or the message, from 1; `NAME` for the path of a new file."""
    content: bytes
    commit: str = ""
    """The commit that adds the line; empty if the line is not committed yet."""


def read_added_lines(patch: bytes, message: bytes = b"", commit: str = "") -> Iterator[AddedLine]:
    """Yield the lines of a commit's message, and then the added lines and new files' paths of a patch, in order.

    `patch` is git's output with `--unified=0` and `--no-prefix`, without the commit's head and message.
    """
    for number, line in enumerate(message.rstrip(b"\n").split(b"\n") if message else (), 1):
        yield AddedLine(MESSAGE, number, line, commit)
    path, number, in_hunk, name = "", 0, False, b""
    for line in patch.split(b"\n"):
        if line.startswith(_FILE):
            path, number, in_hunk = "", 0, False
            names = line.removeprefix(_FILE)
            name = names[: len(names) // 2]  # git names the path twice, with a blank between
        elif line.startswith(b"new file mode ") and not in_hunk:
            yield AddedLine(_shown_path(name), NAME, name, commit)
        elif match := _HUNK.match(line):
            number, in_hunk = int(match["first"]), True
        elif line.startswith(b"+") and in_hunk:
            yield AddedLine(path, number, line[1:], commit)
            number += 1
        elif line.startswith(_NAME):
            path = _shown_path(line.removeprefix(_NAME))


def _shown_path(name: bytes) -> str:
    """Return a path as git shows it, without the tab that git appends to a path with blanks."""
    return name.rstrip(b"\t").strip(b'"').decode(errors="replace")


_SCAN_SECONDS: Final = 180.0
_FOUND: Final = 200
"""Kingfisher's exit code if it has a finding."""
_OPTIONS: Final = (
    "--no-validate", "--no-update-check", "--no-ignore", "--no-dedup", "--no-extract-archives", "--quiet",
    "--format", "jsonl", "--confidence", "medium", "--jobs", "1",
)  # fmt: skip
"""Kingfisher's options: no key is tried at its provider, and no comment next to a key excludes the key."""
_WORDS: Final = re.compile(
    rb"PRIVATE KEY|://[^\s/@:]{1,200}:[^\s/@]{1,200}@"
    rb"|(?i:passw|pwd|secret|token|credential|api.?key|auth)\w{0,40}[\"']?\s{0,8}[:=]"
)
_RUN: Final = re.compile(rb"[\w+/=\-]{16,}")
_PLAIN_RUN: Final = re.compile(rb"[A-Za-z0-9]{16,}")
_LETTER: Final = re.compile(rb"[A-Za-z]")
_CAPITAL: Final = re.compile(rb"[A-Z]")
_DIGIT: Final = re.compile(rb"[0-9]")
_GENERATED: Final = (
    "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "packages.lock.json", "go.sum", "go.work.sum",
    "gradle.lockfile", "*.lock", "*.min.js", "*.js.map", "*.css.map",
)  # fmt: skip
"""Patterns of generated files, whose hashes look like keys."""
_TEST_FOLDERS: Final = frozenset((
    "test", "tests", "testing", "testdata", "test-data", "test_data", "spec", "specs", "fixtures", "__tests__",
    "__fixtures__", "__snapshots__", "mocks", "__mocks__", "example", "examples", "sample", "samples", "e2e",
))  # fmt: skip
_TEST_NAMES: Final = (
    "test_*", "*_test.*", "*.test.*", "*.spec.*", "*_spec.*", "conftest.py", "*.example", "*.sample",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeyMatch:
    """A text that looks like a key, and the added line in which it begins."""

    line: AddedLine
    rule: str
    """The scanner's name for the kind of key, for example `github-pat`."""
    value: bytes
    """The text, which is only for comparisons: never show or store it."""


@dataclass(frozen=True, slots=True)
class KeyScanner:
    """Scans added lines with Kingfisher's rules, which are compiled once and then stored."""

    folder: Path
    """The folder of the compiled rules, which only this user can read. The first scan after an update compiles the
    rules for some seconds, and other scans wait meanwhile: otherwise each scan would compile the same rules."""

    def scan(self, lines: Sequence[AddedLine]) -> tuple[KeyMatch, ...]:
        """Return each text in the added lines that looks like a key, in the order of the lines.

        Lock files and generated files are left out. In test data, only findings of high confidence count, and
        private keys do not count.

        Raises:
            EvidenceError: The scanner did not finish, so the result is unknown.
        """
        text = _Text([line for line in lines if not _is_generated(line.path)])
        if not any(may_hold_a_key(line.content) for line in text.lines):
            return ()
        return tuple(
            match
            for match, is_sure in text.matches(self._run_or_compile(text.content))
            if not _is_test_data(match.line.path) or (is_sure and match.rule != "private-key")
        )

    def _run_or_compile(self, content: bytes) -> bytes:
        compiled = self.folder / f"compiled-{version('kingfisher-bin')}"
        if not compiled.exists():
            with hold_lock(self.folder / "compiling") as compiling:
                if not compiled.exists():
                    output = self._run(content, compiling)
                    compiled.touch(mode=0o600)
                    return output
        return self._run(content)

    def _run(self, content: bytes, *kept: int) -> bytes:
        """Run Kingfisher and return its output; Kingfisher inherits the descriptors `kept`, which hold locks."""
        scratch = self.folder / "scratch"
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        argv = (get_binary_path(), "scan", "-", *_OPTIONS, "--rule-cache-dir", str(self.folder / "rules"))
        environment = {"TMPDIR": str(scratch), "LC_ALL": "C.UTF-8"}
        try:
            program = processes.ProcessStart(argv, environment, pass_fds=kept)
            completed = processes.run_program(program, stdin=content, timeout_seconds=_SCAN_SECONDS)
        except OSError as error:
            raise EvidenceError(f"The scanner for keys could not be started: {error.strerror}.") from error
        if completed.timed_out:
            raise EvidenceError(f"The scanner for keys took longer than {_SCAN_SECONDS:.0f} s.")
        if completed.exit_code not in {0, _FOUND}:
            raise EvidenceError(f"The scanner for keys failed with exit code {completed.exit_code}.")
        return completed.stdout


@dataclass(frozen=True)
class _Text:
    """Added lines as one text for Kingfisher; an empty line separates lines that are not neighbours in a file."""

    lines: Sequence[AddedLine]

    @cached_property
    def _numbered(self) -> tuple[AddedLine | None, ...]:
        numbered: list[AddedLine | None] = []
        before: AddedLine | None = None
        for line in self.lines:
            follows = before is not None and (before.commit, before.path, before.number + 1) == (
                line.commit, line.path, line.number,
            )  # fmt: skip
            numbered += [line] if follows else [None, line]
            before = line
        return tuple(numbered)

    @property
    def content(self) -> bytes:
        """The text for Kingfisher; blanks replace carriage returns, which Kingfisher counts as line ends."""
        return b"\n".join(line.content.replace(b"\r", b" ") if line else b"" for line in self._numbered) + b"\n"

    def matches(self, output: bytes) -> list[tuple[KeyMatch, bool]]:
        """Return the findings in Kingfisher's output, and for each whether Kingfisher is highly confident."""
        matches = []
        for record in map(json.loads, output.splitlines()):
            if "rule" not in record:
                continue
            found = record["finding"]
            # A match may begin in the blank line before a line.
            at = max(0, found["line"] - 1)
            line = next(filter(None, self._numbered[at : found["line"] + 1]), None)
            if line is not None:
                rule = record["rule"]["id"].partition(".")[2] or record["rule"]["id"]
                match = KeyMatch(line, rule, found["snippet"].encode())
                matches.append((match, found["confidence"] == "high"))
        order = {line: position for position, line in enumerate(self._numbered) if line is not None}
        return sorted(matches, key=lambda pair: order[pair[0].line])


def may_hold_a_key(line: bytes) -> bool:
    """Return, in linear time, whether Kingfisher's rules could match a line.

    A line may hold a key if it has a word such as `token`, or a run of characters that looks random: with a digit
    and a capital, or with a long part of letters mixed with digits.
    """
    if _WORDS.search(line):
        return True
    return any(
        _DIGIT.search(run) and (_CAPITAL.search(run) or any(map(_is_mixed, _PLAIN_RUN.findall(run))))
        for run in _RUN.findall(line)
    )


def _is_mixed(run: bytes) -> bool:
    return bool(_DIGIT.search(run) and _LETTER.search(run))


def _is_generated(path: str) -> bool:
    name = PurePosixPath(path).name
    return any(fnmatchcase(name, pattern) for pattern in _GENERATED)


def _is_test_data(path: str) -> bool:
    file = PurePosixPath(path)
    folders = {part.lower() for part in file.parts[:-1]}
    return bool(folders & _TEST_FOLDERS) or any(fnmatchcase(file.name, pattern) for pattern in _TEST_NAMES)
