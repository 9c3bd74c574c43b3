"""Print every command's answer: a text for people or one JSON object for programs, and set the exit code."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum
from fcntl import F_DUPFD_CLOEXEC, fcntl
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, TextIO

from clients.cli.wrapping import echo, terminal_width, wrap
from septet.contracts.task import TaskError
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
from septet.settings import load_settings
from septet.system.masking import mask
from septet.system.preview import printable
from septet.system.timestamps import timestamp
from workers.observing.logs import logs_are_json

if TYPE_CHECKING:
    from temporalio.service import RPCError

    from septet.contracts import replies


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


class StoppedWaitingError(Exception):
    """Who waited for something waits no longer; what they waited for goes on."""

    def __init__(self, message: str, remedy: str) -> None:
        """Set the work that continues (`message`), and the commands to follow or to stop it (`remedy`)."""
        self.message = message
        self.remedy = remedy
        super().__init__(message)


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

_ABOVE_STDERR: Final = 3
_FOR_JSON: Final[list[TextIO]] = []
"""The real stdout, if this process reserved it for JSON."""


@dataclass(frozen=True, slots=True)
class CommandReply:
    """A command's answer."""

    payload: Mapping[str, Any] = field(default_factory=dict)
    """The answer for programs, printed as `{"ok": true, …}`."""
    show: Callable[[], None] = lambda: None
    """Prints the answer for people."""
    failure: SeptetError | None = None
    """The failure in an answer of a command that did its work, such as a failed work order."""
    is_printed: bool = False
    """Whether the JSON object was printed earlier, such as that of `up` when it is ready."""

    @classmethod
    def from_reply(
        cls, answer: "replies.Reply", show: Callable[[], None], failure: SeptetError | None = None
    ) -> Self:
        """Return a reply of the operations as a command's answer."""
        return cls(answer.model_dump(mode="json", exclude={"ok"}), show, failure)


def reply(work: Callable[[], Awaitable[CommandReply]], *, as_json: bool, is_service: bool = False) -> None:
    """Do a command's work and end this process with its answer; an error of a service goes to its log."""
    if as_json:
        _keep_stdout_for_json()
    try:
        answer = asyncio.run(_await(work))
    except KeyboardInterrupt:
        end_with_error("Interrupted", "Interrupted.", "", ExitCode.INTERRUPTED, as_json=as_json)
    except StoppedWaitingError as error:
        end_with_error("Interrupted", error.message, error.remedy, ExitCode.INTERRUPTED, as_json=as_json)
    except BrokenPipeError:
        end_without_reader()
    except (SeptetError, OSError) as error:
        code = exit_code_of(error) if isinstance(error, SeptetError) else ExitCode.FAILED
        _end_with_reply(error, code, as_json=as_json, is_service=is_service)
    except _server_error() as error:
        _end_with_reply(error, ExitCode.SERVER_NOT_REACHED, as_json=as_json, is_service=is_service)
    try:
        _print_reply(answer, as_json=as_json)
    except BrokenPipeError:
        end_without_reader()
    raise SystemExit(ExitCode.OK if answer.failure is None else exit_code_of(answer.failure))


def _print_reply(answer: CommandReply, *, as_json: bool) -> None:
    if as_json:
        if not answer.is_printed:
            print_json({**_outcome(answer), **answer.payload})
        return
    answer.show()
    sys.stdout.flush()
    if answer.failure is not None:
        _print_error(answer.failure.message, answer.failure.remedy)


def end_without_reader() -> NoReturn:
    """Exit with 0 and without an error: the reader of stdout, such as `head`, closed the pipe."""
    for stdout in (sys.stdout, *_FOR_JSON):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
    raise SystemExit(ExitCode.OK)


def _keep_stdout_for_json() -> None:
    """Reserve stdout for `print_json`: redirect the output of libraries and programs to stderr.

    If `sys.stdout` was replaced, such as by a test, nothing happens.
    """
    if _FOR_JSON or sys.stdout is not sys.__stdout__:
        return
    with suppress(OSError):  # stdout is closed: nothing can mix with anything then
        _FOR_JSON.append(os.fdopen(fcntl(1, F_DUPFD_CLOEXEC, _ABOVE_STDERR), "w", encoding="utf-8"))
        try:
            os.dup2(2, 1)
        except OSError:  # stderr is closed
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object on one line of stdout, as UTF-8: an invalid byte, as in an argument, becomes a `?`."""
    _keep_stdout_for_json()
    stdout = _FOR_JSON[-1] if _FOR_JSON else sys.stdout
    stdout.write(json.dumps(value, ensure_ascii=False).encode(errors="replace").decode() + "\n")
    stdout.flush()


def tell(words: str) -> None:
    """Print a notice on stderr: it is neither an error nor a part of the answer."""
    echo(wrap(printable(words), terminal_width(sys.stderr)), err=True, colour="yellow")


def error_object(kind: str, message: str, remedy: str) -> dict[str, Any]:
    """Return an error's JSON object for programs."""
    return {"ok": False, "error": {"type": kind, "message": message, "remedy": remedy}}


def end_with_error(kind: str, message: str, remedy: str, code: ExitCode, *, as_json: bool) -> NoReturn:
    """Print an error and its remedy, and exit."""
    if as_json:
        print_json(error_object(kind, message, remedy))
    elif code is ExitCode.INTERRUPTED:
        echo(printable("\n".join(part for part in (message, remedy) if part)), err=True)
    else:
        _print_error(message, remedy)
    raise SystemExit(code)


def _end_with_reply(
    error: "SeptetError | OSError | RPCError", code: ExitCode, *, as_json: bool, is_service: bool
) -> NoReturn:
    from clients.error_reply import error_reply

    body = error_reply(error).error
    if is_service and not as_json:
        from clients.cli.reply import log_end

        if log_end(body):
            raise SystemExit(code)
    end_with_error(body.type, body.message, body.remedy, code, as_json=as_json)


def exit_code_of(error: SeptetError) -> ExitCode:
    """Return the exit code for an error: that of the nearest class in the table."""
    return next((_EXIT_CODES[kind] for kind in type(error).__mro__ if kind in _EXIT_CODES), ExitCode.FAILED)


def _server_error() -> "type[RPCError]":
    """Return the Temporal client's error class, imported only after an exception because the import is slow."""
    from temporalio.service import RPCError

    return RPCError


async def _await(work: Callable[[], Awaitable[CommandReply]]) -> CommandReply:
    return await work()


def _outcome(answer: CommandReply) -> dict[str, Any]:
    if answer.failure is None:
        return {"ok": True}
    from clients.error_reply import error_reply

    return error_reply(answer.failure).model_dump(mode="json")


def _print_error(message: str, remedy: str) -> None:
    width = terminal_width(sys.stderr)
    echo(wrap(printable(f"Error: {message}"), width), err=True, colour="red")
    if remedy:
        echo(wrap(printable(remedy), width), err=True)


def log_end(error: TaskError) -> bool:
    """Log an error that ends this service, and return `True`; nothing where its logs are for a person."""
    try:
        settings = load_settings()
    except SeptetError:  # that is the error
        settings = None
    if not logs_are_json(settings):
        return False
    event = {"event": "ended_by_error", **error.model_dump(), "level": "error"}
    line = json.dumps({**event, "timestamp": timestamp(datetime.now(UTC))}, ensure_ascii=False)
    sys.stderr.write(mask(line) + "\n")
    return True
