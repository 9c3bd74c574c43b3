"""The Temporal SDK's own runtime, as this process uses it."""

import logging
from datetime import timedelta
from functools import cache
from typing import Final

from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

_LOGGED: Final = TelemetryFilter(core_level="WARN", other_level="ERROR")
"""As much as the SDK tells by itself, of a server that is away above all."""


_HEARTBEAT_SECONDS: Final = 10.0
_LEAST_HEARTBEAT_SECONDS: Final = 1.0
"""The SDK takes no less."""


def heartbeat_seconds(probe_seconds: float) -> float:
    """Return how often the workers of a process tell the server that they live; it costs no Action."""
    return max(_LEAST_HEARTBEAT_SECONDS, min(_HEARTBEAT_SECONDS, probe_seconds / 6))


@cache
def quiet_runtime(heartbeat: float = _HEARTBEAT_SECONDS) -> Runtime:
    """Return the one runtime of this process, which logs to stderr; by itself it would write to stdout.

    Args:
        heartbeat: Seconds between the heartbeats of the process's workers.
    """
    forwarding = LogForwardingConfig(logger=logging.getLogger("temporalio"))
    return Runtime(
        telemetry=TelemetryConfig(logging=LoggingConfig(filter=_LOGGED, forwarding=forwarding)),
        worker_heartbeat_interval=timedelta(seconds=heartbeat),
    )
