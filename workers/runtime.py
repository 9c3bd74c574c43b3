"""The Temporal SDK's own runtime, as this process uses it."""

import logging
from functools import cache
from typing import Final

from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

_LOGGED: Final = TelemetryFilter(core_level="WARN", other_level="ERROR")
"""As much as the SDK tells by itself, of a server that is away above all."""


@cache
def quiet_runtime() -> Runtime:
    """Return the one runtime of this process, which logs to stderr; by itself it would write to stdout."""
    forwarding = LogForwardingConfig(logger=logging.getLogger("temporalio"))
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=_LOGGED, forwarding=forwarding)))
