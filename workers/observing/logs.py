"""Logs on stderr: events with short constant names, with fields and with Temporal's context."""

import asyncio
import logging
import re
import sys
import traceback
from collections.abc import MutableMapping
from functools import partial
from typing import Any, Final

import structlog
from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError, TemporalError

from septet.settings import Settings
from septet.system.masking import mask

_QUOTES: Final = ("why", "reason", "reasons", "error", "preview", "paths")
"""The fields of log events that may quote an agent or a person."""
_OF_THE_MACHINE: Final = (
    "guests_remain_root",
    "hosts_are_probed",
    "seal_damaged",
    "seal_keys_not_read",
    "server_not_described",
    "unconfined",
)
"""The log events that quote nobody, because they are about the host, the server or the keys."""
_WITHHELD: Final = "(sealed)"
_BEFORE_VALUES: Final = re.compile(r"[\n:(<]")
_QUOTED_ERROR: Final = re.compile(r"\b(error(?: of type [^:]{0,200})?): .*", re.DOTALL)
"""An error's text inside a message of the SDK, from the word `error` to the end."""


def withhold_words(logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Remove error texts, and fields that may quote people, from a log event of Septet."""
    del logger, method
    if event.get("event") not in _OF_THE_MACHINE:
        event.update(dict.fromkeys(event.keys() & _QUOTES, _WITHHELD))
    if isinstance(error := event.get("exc_info"), BaseException):
        del event["exc_info"]
        event["exception"] = f"{_kind(error)} {_WITHHELD}{_place(error)}"
    return event


def withhold_cause(record: logging.LogRecord) -> bool:
    """Replace a log record's error by its type and, for a defect, its stack; return `True` to keep the record."""
    message = _without_quotes(record)
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        message = f"{message}: {_kind(error)} {_WITHHELD}{_place(error)}"
        record.exc_info = record.exc_text = None
    record.msg, record.args = message, ()
    return True


def _without_quotes(record: logging.LogRecord) -> str:
    """Return a log record's message without the error texts that asyncio and the SDK quote."""
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


_EXPECTED: Final = (TemporalError, asyncio.CancelledError)
"""Errors that activities raise on purpose."""
_FOR_MACHINES: Final = ("workflow", "run_id", "agent", "trace_id")
_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def set_up_logs(settings: Settings) -> None:
    """Write log events to stderr, as JSON or text; if payloads are sealed, leave out what may quote people."""
    level, console = _LEVELS[settings.log_level], not logs_are_json(settings)
    written = structlog.dev.ConsoleRenderer(sort_keys=False) if console else structlog.processors.JSONRenderer()

    def renderer(logger: object, method: str, event: MutableMapping[str, Any]) -> str:
        return mask(str(written(logger, method, event)))

    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        _temporal_context,
        *((_workflow_trace,) if settings.traces else ()),
        structlog.processors.add_log_level,
        *((withhold_words,) if settings.seals else ()),
        *(_FOR_PEOPLE if console else (structlog.processors.TimeStamper(fmt="iso", utc=True),)),
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    as_events = () if console else (partial(library_event, is_sealed=settings.seals),)
    foreign = [*as_events, *shared, structlog.processors.format_exc_info]
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processor=renderer, foreign_pre_chain=foreign))
    handler.addFilter(withhold_cause if settings.seals else _with_the_cause)
    activity.logger.activity_info_on_message = workflow.logger.workflow_info_on_message = False
    logging.basicConfig(level=max(level, logging.WARNING), handlers=[handler], force=True)


def logs_are_json(settings: Settings | None) -> bool:
    """Return whether logs are JSON; for unreadable settings (`None`), whether logs are JSON by default."""
    log_format = settings.log_format if settings is not None else "auto"
    return log_format == "json" or (log_format == "auto" and not sys.stderr.isatty())


def library_event(
    logger: object, method: str, event: MutableMapping[str, Any], *, is_sealed: bool = False
) -> MutableMapping[str, Any]:
    """Turn a library's log record into an event with a constant name; the message becomes a field of the event.

    Unless payloads are sealed, the fields of an SDK's log record become fields of the event too.
    """
    del logger, method
    record: logging.LogRecord = event["_record"]
    told = {"logger": record.name, "message": event["event"]}
    core = getattr(record, "temporal_log", None)
    if core is not None and not is_sealed:
        told |= {str(name): str(value) for name, value in core.fields.items()} | {"message": core.message}
    return {**told, **event, "event": "temporal_sdk" if record.name.startswith("temporalio") else "library"}


def _temporal_context(logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    del logger, method
    if activity.in_activity():
        about = activity.info()
        event.setdefault("work_order_id", about.workflow_id)
        event.setdefault("workflow", about.workflow_type)
        event.setdefault("run_id", about.workflow_run_id)
        event.setdefault("activity", about.activity_type)
        event.setdefault("attempt", about.attempt)
    elif workflow.in_workflow():
        here = workflow.info()
        event.setdefault("work_order_id", here.workflow_id)
        event.setdefault("workflow", here.workflow_type)
        event.setdefault("run_id", here.run_id)
    return event


def _workflow_trace(logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add the trace id to a workflow's log event; activities add their trace id themselves."""
    del logger, method
    if workflow.in_workflow():
        from opentelemetry import trace

        span = trace.get_current_span().get_span_context()
        if span.is_valid:
            event.setdefault("trace_id", trace.format_trace_id(span.trace_id))
    return event


def shorten_event(logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Put the work order first in a log event, and remove fields that no person needs."""
    del logger, method
    for name in _FOR_MACHINES:
        event.pop(name, None)
    if event.get("activity") == event.get("step"):
        event.pop("activity", None)
    if event.get("attempt") == 1:
        del event["attempt"]
    first = {name: event.pop(name) for name in ("work_order_id", "step") if name in event}
    return {**first, **event}


_FOR_PEOPLE: Final = (shorten_event, structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False))


def _with_the_cause(record: logging.LogRecord) -> bool:
    """Add the cause to a warning of the SDK; return whether to log the warning.

    Only a defect is logged with its stack. An attempt that a person ended is not logged.
    """
    error = record.exc_info[1] if record.exc_info else None
    if record.name == "temporalio.activity" and isinstance(error, asyncio.CancelledError):
        return False
    if error is not None and record.name.startswith("temporalio.") and record.levelno <= logging.WARNING:
        record.msg, record.args = f"{record.getMessage()}: {type(error).__name__}: {error}", ()
        if isinstance(error, _EXPECTED):
            record.exc_info = record.exc_text = None
    return True
