"""Print lines for people, JSON for programs, and errors with exit codes."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import IntEnum
from fcntl import F_DUPFD_CLOEXEC, fcntl
from typing import Any, Final, NoReturn, TextIO

from septet.errors import (
    AgentMissingError,
    AlreadyRunningError,
    InvalidInputError,
    NotFoundError,
    RefusedTransitionError,
    SeptetError,
    ServerNotReachedError,
    UsageError,
    WorkspaceBusyError,
)
from septet.system.masking import printable

_FOR_JSON: Final[list[TextIO]] = []
"""The real stdout if this process reserved it for JSON; otherwise empty."""
_COLOURS: Final = {"red": 31, "yellow": 33}
_WORD: Final = re.compile(
    r"`[^`\n]*`\S*|'[^'\n]*'\S*|(?:SEPTET_\w+=(?:'[^'\n]*'|\S+) )+(?:\S*/bin/)?septet(?!\S)|\S+"
)
"""The pattern of a word; quoted text is one word."""
_PROGRAM: Final = re.compile(r"[(\"]?(?:SEPTET_.* )?(?:\S*/bin/)?septet")
"""The pattern of `septet` as a command's first word; the text from there to the next `.,;:)` stays on one line."""


def wrap(text: str, width: int, indent: int = 0) -> str:
    """Return a text whose lines fit `width`; a word longer than a line is not broken.

    A `width` of 0 changes nothing. `indent` spaces precede each line of a paragraph except the first.
    """
    return "\n".join(_wrap_line(line, width, indent) for line in text.split("\n")) if width else text


def terminal_width(stream: TextIO) -> int:
    """Return the columns of a stream's terminal; 0 if the stream is not a terminal."""
    return shutil.get_terminal_size().columns if stream.isatty() else 0


def say(words: str, *, indent: int = 0, err: bool = False) -> None:
    """Print words for people on stdout, or on stderr; `indent` applies to all lines except the first."""
    echo(wrap(words, terminal_width(sys.stderr if err else sys.stdout), indent), err=err)


def echo(text: str, *, err: bool = False, colour: str = "") -> None:
    """Print a text unchanged on stdout, or on stderr; `colour` is used only on a terminal."""
    stream = sys.stderr if err else sys.stdout
    if colour and stream.isatty():
        text = f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"
    stream.write(f"{text}\n")
    stream.flush()


def keep_stdout_for_json() -> None:
    """Reserve stdout for `print_json`; other output of this process then goes to stderr.

    If `sys.stdout` was replaced, for example by a test, nothing happens.
    """
    if _FOR_JSON or sys.stdout is not sys.__stdout__:
        return
    with suppress(OSError):  # stdout is closed: no output can mix with it
        _FOR_JSON.append(os.fdopen(fcntl(1, F_DUPFD_CLOEXEC, 3), "w", encoding="utf-8"))
        try:
            os.dup2(2, 1)
        except OSError:  # stderr is closed
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def print_json(value: Mapping[str, Any]) -> None:
    """Print a JSON object on one line of stdout in UTF-8; an invalid character becomes `?`."""
    keep_stdout_for_json()
    stdout = _FOR_JSON[-1] if _FOR_JSON else sys.stdout
    stdout.write(json.dumps(value, ensure_ascii=False).encode(errors="replace").decode() + "\n")
    stdout.flush()


def notify(words: str) -> None:
    """Print a notice on stderr."""
    echo(wrap(printable(words), terminal_width(sys.stderr)), err=True, colour="yellow")


def print_error(message: str, remedy: str) -> None:
    """Print an error and its remedy on stderr."""
    width = terminal_width(sys.stderr)
    echo(wrap(printable(f"Error: {message}"), width), err=True, colour="red")
    if remedy:
        echo(wrap(printable(remedy), width), err=True)


def drop_stdout() -> None:
    """Discard all further output to stdout, because the reader of the pipe has closed the pipe."""
    for stdout in (sys.stdout, *_FOR_JSON):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())


def _wrap_line(line: str, width: int, indent: int) -> str:
    lines = [""]
    for gap, word in _words(line):
        end = len(lines[-1]) + len(gap)
        if end + len(word) <= width or end <= indent or not lines[-1].strip():
            lines[-1] += gap + word
        else:
            lines.append(" " * indent + word)
    return "\n".join(lines)


def _words(line: str) -> Iterator[tuple[str, str]]:
    """Yield each part of a line that must not be broken, as a pair: the space before the part, and the part."""
    gap, command, end = "", "", 0
    for match in _WORD.finditer(line):
        word, space, end = match[0], line[end : match.start()], match.end()
        if not command and _PROGRAM.fullmatch(word) is None:
            yield space, word
            continue
        gap, command = (gap, f"{command}{space}{word}") if command else (space, word)
        if word.endswith((".", ",", ";", ":", ")")):
            yield gap, command
            command = ""
    if command:
        yield gap, command


class ExitCode(IntEnum):
    """The exit codes of commands."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    SERVER_NOT_REACHED = 4
    REFUSED = 5
    ALREADY_RUNNING = 6
    INTERRUPTED = 130


_EXIT_CODES: Final[Mapping[type[SeptetError], ExitCode]] = {
    UsageError: ExitCode.USAGE,
    InvalidInputError: ExitCode.USAGE,
    AgentMissingError: ExitCode.USAGE,
    NotFoundError: ExitCode.NOT_FOUND,
    ServerNotReachedError: ExitCode.SERVER_NOT_REACHED,
    RefusedTransitionError: ExitCode.REFUSED,
    WorkspaceBusyError: ExitCode.REFUSED,
    AlreadyRunningError: ExitCode.ALREADY_RUNNING,
}


def exit_code_of(error: SeptetError) -> ExitCode:
    """Return the exit code for an error, by the error's class or its nearest base class."""
    return next((_EXIT_CODES[kind] for kind in type(error).__mro__ if kind in _EXIT_CODES), ExitCode.FAILED)


def end_with_error(kind: str, message: str, remedy: str, code: ExitCode, *, as_json: bool) -> NoReturn:
    """Print an error and its remedy, and exit."""
    if as_json:
        print_json({"ok": False, "error": {"type": kind, "message": message, "remedy": remedy}})
    elif code is ExitCode.INTERRUPTED:
        echo(printable("\n".join(part for part in (message, remedy) if part)), err=True)
    else:
        print_error(message, remedy)
    raise SystemExit(code)
