"""End this process with an error: exit code, message and remedy."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NoReturn

from clients.cli.terminal.output import echo, print_error, print_json
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
from septet.system.preview import printable


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
    """Return the exit code for an error: the code of its nearest class in the table."""
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
