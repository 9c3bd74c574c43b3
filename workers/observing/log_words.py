"""Logs where Temporal's payloads are sealed: what happened, without a word of issues, plans, answers or people."""

import logging
import re
import traceback
from collections.abc import MutableMapping
from typing import Any, Final

from temporalio.exceptions import ApplicationError

_QUOTES: Final = ("why", "reason", "reasons", "error", "preview", "paths")
"""What may quote an agent or a person, whatever the event."""
_OF_THE_MACHINE: Final = (
    "guests_remain_root",
    "hosts_are_probed",
    "seal_damaged",
    "seal_keys_not_read",
    "server_not_described",
    "unconfined",
)
"""Events that quote nobody: a worker says what its host, its server or its keys lack."""
_WITHHELD: Final = "(sealed)"
_BEFORE_VALUES: Final = re.compile(r"[\n:(<]")
_QUOTED_ERROR: Final = re.compile(r"\b(error(?: of type [^:]{0,200})?): .*", re.DOTALL)
"""As in the SDK's `Completing as failure during heartbeat with error of type …: …`."""


def withhold_words(logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Leave out what an event of ours quotes, and what its error says."""
    del logger, method
    if event.get("event") not in _OF_THE_MACHINE:
        event.update(dict.fromkeys(event.keys() & _QUOTES, _WITHHELD))
    if isinstance(error := event.get("exc_info"), BaseException):
        del event["exc_info"]
        event["exception"] = f"{_kind(error)} {_WITHHELD}{_place(error)}"
    return event


def withhold_cause(record: logging.LogRecord) -> bool:
    """Leave out what the error of a library's record says; its type stays, and of a defect the place."""
    message = _without_quotes(record)
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        message = f"{message}: {_kind(error)} {_WITHHELD}{_place(error)}"
        record.exc_info = record.exc_text = None
    record.msg, record.args = message, ()
    return True


def _without_quotes(record: logging.LogRecord) -> str:
    """Return what a record says without the errors that it quotes; asyncio shows them in tasks and callbacks."""
    message = record.getMessage()
    if record.name == "asyncio":
        return _BEFORE_VALUES.split(message, maxsplit=1)[0].rstrip()
    return _QUOTED_ERROR.sub(rf"\1: {_WITHHELD}", message) if record.name.startswith("temporalio.") else message


def _kind(error: BaseException) -> str:
    return f"{type(error).__name__} {error.type}" if isinstance(error, ApplicationError) else type(error).__name__


def _place(error: BaseException) -> str:
    if isinstance(error, ApplicationError):
        return ""
    return "".join(("\n", *traceback.format_tb(error.__traceback__))).rstrip()
