"""The metrics of a worker, from the SDK and from Septet, at one address for Prometheus."""

import math
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cache, partial

from temporalio import activity
from temporalio.common import MetricMeter
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig

from septet.contracts.lanes import SessionSummary, SummariseCall
from septet.contracts.steps import EndCall, FinalizeCall, StepCall, StepResult
from septet.errors import MetricsAddressError
from septet.telemetry.metrics import METRICS, QUEUE_WAIT, Metric, MetricKind
from septet.telemetry.recorder import RECORDER
from septet.telemetry.step_values import record_end, record_finalizer, record_step, record_summary
from workers.observing.runtime import sdk_logging


@cache
def measured_runtime(heartbeat: float, address: str) -> Runtime:
    """Return the runtime of a worker that serves metrics for Prometheus at an address (host:port).

    Raises:
        MetricsAddressError: Metrics cannot be served at the address.
    """
    telemetry = TelemetryConfig(
        logging=sdk_logging(), metrics=_prometheus_config(address), attach_service_name=False
    )
    try:
        runtime = Runtime(telemetry=telemetry, worker_heartbeat_interval=timedelta(seconds=heartbeat))
    except ValueError as error:
        raise MetricsAddressError(f"Metrics cannot be served at {address}: {error}.") from error
    _record_with(runtime.metric_meter)
    return runtime


def _prometheus_config(address: str) -> PrometheusConfig:
    """Return the SDK's configuration that serves metrics at an address (host:port) under Prometheus's names."""
    buckets = {metric.name: metric.buckets for metric in METRICS if metric.kind is MetricKind.HISTOGRAM}
    return PrometheusConfig(
        bind_address=address,
        counters_total_suffix=True,
        unit_suffix=True,
        durations_as_seconds=True,
        histogram_bucket_overrides=buckets,
    )


def _record_with(meter: MetricMeter) -> None:
    """Send this process's metrics to a runtime's `meter`, from which Prometheus reads."""
    instrument = cache(partial(_instrument, meter))  # made at the metric's first value
    RECORDER.send_to(lambda metric, value, labels: instrument(metric)(value, labels))


def _instrument(meter: MetricMeter, metric: Metric) -> Callable[[float, Mapping[str, str]], None]:
    if metric.kind is MetricKind.COUNTER:
        counter = meter.create_counter(metric.name, metric.help)
        return lambda value, labels: counter.add(math.ceil(value), labels)
    if metric.kind is MetricKind.GAUGE:
        return meter.create_gauge_float(metric.name, metric.help).set
    return meter.create_histogram_float(metric.name, metric.help).record


class StepMetrics:
    """Records how long each activity waited, and the outcomes of steps and finalizers.

    A replay runs no activity, so no value counts twice.
    """

    def begin(self) -> None:
        """Record the activity's wait for a slot, in seconds."""
        info = activity.info()
        wait = (info.started_time - info.current_attempt_scheduled_time).total_seconds()
        RECORDER.record(QUEUE_WAIT, max(wait, 0.0), activity=info.activity_type)

    async def end(self, call: object, outcome: StepResult | SessionSummary) -> None:
        """Record the activity's outcome."""
        if isinstance(outcome, SessionSummary):
            if isinstance(call, SummariseCall):
                record_summary(call, outcome)
        elif isinstance(call, FinalizeCall):
            record_finalizer(call, outcome)
        elif isinstance(call, EndCall):
            record_end(call, outcome)
        elif isinstance(call, StepCall):
            record_step(call, outcome)
