"""The Temporal SDK's own runtime, as this process uses it."""

import logging
from datetime import timedelta
from functools import cache
from typing import Final

from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

from septet.errors import MetricsAddressError
from workers.observing.metrics import prometheus_config, record_with

_LOGGED: Final = TelemetryFilter(core_level="WARN", other_level="ERROR")
"""As much as the SDK tells by itself, of a server that is away above all."""


_HEARTBEAT_SECONDS: Final = 10.0
_LEAST_HEARTBEAT_SECONDS: Final = 1.0
"""The SDK takes no less."""


def heartbeat_seconds(probe_seconds: float) -> float:
    """Return how often the workers of a process send the server their heartbeats; it costs no Action."""
    return max(_LEAST_HEARTBEAT_SECONDS, min(_HEARTBEAT_SECONDS, probe_seconds / 6))


@cache
def quiet_runtime(heartbeat: float = _HEARTBEAT_SECONDS) -> Runtime:
    """Return the one runtime of this process, which logs to stderr; by itself it would write to stdout.

    Args:
        heartbeat: Seconds between the heartbeats of the process's workers.
    """
    return Runtime(
        telemetry=TelemetryConfig(logging=_logging()), worker_heartbeat_interval=timedelta(seconds=heartbeat)
    )


@cache
def measured_runtime(heartbeat: float, address: str) -> Runtime:
    """Return the runtime of a worker that serves metrics for Prometheus, at an address as host:port.

    Raises:
        MetricsAddressError: Nothing can be served there.
    """
    telemetry = TelemetryConfig(logging=_logging(), metrics=prometheus_config(address), attach_service_name=False)
    try:
        runtime = Runtime(telemetry=telemetry, worker_heartbeat_interval=timedelta(seconds=heartbeat))
    except ValueError as error:
        raise MetricsAddressError(f"Metrics cannot be served at {address}: {error}.") from error
    record_with(runtime.metric_meter)
    return runtime


def _logging() -> LoggingConfig:
    """Return where the SDK logs: nowhere in a command that sets up no logs, for its error says what is wrong."""
    logger = logging.getLogger("temporalio")
    logger.addHandler(logging.NullHandler())
    return LoggingConfig(filter=_LOGGED, forwarding=LogForwardingConfig(logger=logger))
