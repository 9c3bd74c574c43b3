"""Logs where Temporal's payloads are sealed: what happened, without a word of issues, plans, answers or people."""

import logging
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
    """Leave out what the error of a record of Temporal's says; its type stays, and of a defect the place."""
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        record.msg, record.args = f"{record.getMessage()}: {_kind(error)} {_WITHHELD}{_place(error)}", ()
        record.exc_info = record.exc_text = None
    return True


def _kind(error: BaseException) -> str:
    return f"{type(error).__name__} {error.type}" if isinstance(error, ApplicationError) else type(error).__name__


def _place(error: BaseException) -> str:
    if isinstance(error, ApplicationError):
        return ""
    return "".join(("\n", *traceback.format_tb(error.__traceback__))).rstrip()
