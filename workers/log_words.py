"""Logs where Temporal's payloads are sealed: what happened, without a word of issues, plans, answers or people."""

import logging
import traceback
from collections.abc import Mapping, MutableMapping
from typing import Any, Final

from temporalio.exceptions import ApplicationError

_QUOTES: Final[Mapping[str, str]] = {
    "result_text_extracted": "preview",
    "step_not_done": "reasons",
    "tried_again": "why",
    "rescue_taken": "reason",
    "progress_comment_not_written": "why",
}
"""By event: what it quotes that an agent or a person may have written."""
_WITHHELD: Final = "(sealed)"


def withhold_words(logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Leave out what an event of ours quotes."""
    del logger, method
    name = _QUOTES.get(event.get("event", ""), "")
    if name in event:
        event[name] = _WITHHELD
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
