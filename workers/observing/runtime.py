"""The Temporal SDK's runtime in this process, and the traces that settings turn on."""

import logging
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Final

from temporalio.client import Interceptor
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

from septet.errors import InvalidInputError
from septet.settings import Settings

if TYPE_CHECKING:
    from workers.observing.traces import AgentTraces, Tracing

_LOGGED: Final = TelemetryFilter(core_level="WARN", other_level="ERROR")
"""The SDK's log levels by default; most lines of lower levels are only about an absent server."""


_HEARTBEAT_SECONDS: Final = 10.0
_LEAST_HEARTBEAT_SECONDS: Final = 1.0
"""The SDK's shortest time between heartbeats, in seconds."""


def heartbeat_seconds(probe_seconds: float) -> float:
    """Return the seconds between heartbeats of a process's workers: a sixth of `probe_seconds`, within limits."""
    return max(_LEAST_HEARTBEAT_SECONDS, min(_HEARTBEAT_SECONDS, probe_seconds / 6))


@cache
def quiet_runtime(heartbeat: float = _HEARTBEAT_SECONDS) -> Runtime:
    """Return the runtime without metrics, which all callers share; `heartbeat` is in seconds."""
    return Runtime(
        telemetry=TelemetryConfig(logging=sdk_logging()), worker_heartbeat_interval=timedelta(seconds=heartbeat)
    )


def sdk_logging() -> LoggingConfig:
    """Return the SDK's logging configuration; in a process that sets up no logs, the SDK prints no warnings."""
    logger = logging.getLogger("temporalio")
    logger.addHandler(logging.NullHandler())
    return LoggingConfig(filter=_LOGGED, forwarding=LogForwardingConfig(logger=logger))


def observers(settings: Settings) -> list[Interceptor]:
    """Return a client's interceptors: one for traces if settings want traces, else none.

    Raises:
        InvalidInputError: Traces are on, and their packages are not installed.
    """
    return [tracing_of(settings, settings.traces)[0]] if settings.traces is not None else []


def tracing_of(settings: Settings, address: str) -> "tuple[Tracing, AgentTraces]":
    """Return the interceptor that traces a client's calls, and the listener that traces agents.

    Raises:
        InvalidInputError: The packages are not installed.
    """
    try:
        from workers.observing.traces import tracing
    except ModuleNotFoundError as error:
        remedy = "Install them with Septet: pip install 'septet[otel]'."
        raise InvalidInputError(
            f"SEPTET_TRACES needs packages that are missing: {error}.", remedy=remedy
        ) from error
    return tracing(settings, address)
