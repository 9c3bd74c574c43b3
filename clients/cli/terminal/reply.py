"""Run a command, and print its reply: text for people or one JSON object for programs."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

from clients.cli.commands import load
from clients.cli.terminal.output import (
    ExitCode,
    drop_stdout,
    end_with_error,
    exit_code_of,
    keep_stdout_for_json,
    print_error,
    print_json,
)
from septet.errors import SeptetError

if TYPE_CHECKING:
    from septet.contracts import replies

_ERROR_OF_SERVER: Final = "temporalio.service:RPCError"
"""The server's error class, imported only after an error, because the import takes long."""


class StoppedWaitingError(Exception):
    """A person stopped waiting for work that continues."""

    def __init__(self, message: str, remedy: str) -> None:
        """Set what is printed: which work continues (`message`), and how to watch or stop that work (`remedy`)."""
        self.message = message
        self.remedy = remedy
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class CommandReply:
    """What a command prints at its end, and the error with which it fails."""

    payload: Mapping[str, Any] = field(default_factory=dict)
    """The reply for programs, printed as `{"ok": true, …}`."""
    show: Callable[[], None] = lambda: None
    failure: SeptetError | None = None
    """The failure of the work that the command shows, such as of a work order; `None` without a failure."""
    is_printed: bool = False
    """Whether the command has printed its JSON object, as `up` does when it is ready."""

    @classmethod
    def from_reply(
        cls, answer: "replies.Reply", show: Callable[[], None], failure: SeptetError | None = None
    ) -> Self:
        """Return an operation's reply as a command's reply; `show` prints the reply for people."""
        return cls(answer.model_dump(mode="json", exclude={"ok"}), show, failure)


def reply(
    work: Callable[[], Coroutine[Any, Any, CommandReply]], *, as_json: bool, is_service: bool = False
) -> None:
    """Run a command, print its reply or error, and end this process; a service logs its error instead."""
    if as_json:
        keep_stdout_for_json()
    try:
        answer = asyncio.run(work())
        _print_reply(answer, as_json=as_json)
    except KeyboardInterrupt:
        end_with_error("Interrupted", "Interrupted.", "", ExitCode.INTERRUPTED, as_json=as_json)
    except StoppedWaitingError as error:
        end_with_error("Interrupted", error.message, error.remedy, ExitCode.INTERRUPTED, as_json=as_json)
    except BrokenPipeError:
        drop_stdout()
        raise SystemExit(ExitCode.OK) from None
    except (SeptetError, OSError) as error:
        code = exit_code_of(error) if isinstance(error, SeptetError) else ExitCode.FAILED
        _end_with_reply(error, code, as_json=as_json, is_service=is_service)
    except load(_ERROR_OF_SERVER) as error:
        _end_with_reply(error, ExitCode.SERVER_NOT_REACHED, as_json=as_json, is_service=is_service)
    raise SystemExit(ExitCode.OK if answer.failure is None else exit_code_of(answer.failure))


def _print_reply(answer: CommandReply, *, as_json: bool) -> None:
    if not as_json:
        answer.show()
        sys.stdout.flush()
        if answer.failure is not None:
            print_error(answer.failure.message, answer.failure.remedy)
    elif not answer.is_printed:
        outcome = {"ok": True} if answer.failure is None else _reply_of(answer.failure).model_dump(mode="json")
        print_json({**outcome, **answer.payload})


def _end_with_reply(error: Exception, code: ExitCode, *, as_json: bool, is_service: bool) -> NoReturn:
    body = _reply_of(error).error
    if is_service and not as_json and load("clients.cli.terminal.serving:log_end")(body):
        raise SystemExit(code)
    end_with_error(body.type, body.message, body.remedy, code, as_json=as_json)


def _reply_of(error: Exception) -> "replies.ErrorReply":
    """Return the reply for an error, as the HTTP API would return it."""
    answer: replies.ErrorReply = load("clients.error_reply:error_reply")(error)
    return answer
