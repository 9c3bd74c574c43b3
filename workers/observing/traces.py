"""Traces by OpenTelemetry: one trace for each work order, from the client to each agent run and tool call.

Only a process with SEPTET_TRACES imports this module, which needs `septet[otel]`. The SDK makes the spans of
workflows and activities. Septet adds a span for the whole work order, and spans for agents and their tools. If the
client began no trace, Septet begins one.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

import structlog
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags, Tracer
from opentelemetry.util.types import Attributes, AttributeValue
from temporalio import activity, workflow
from temporalio.contrib.opentelemetry import TracingInterceptor, TracingWorkflowInboundInterceptor
from temporalio.exceptions import FailureError
from temporalio.worker import ExecuteWorkflowInput, WorkflowInterceptorClassInput

from septet.agents.clis.registry import ADAPTERS
from septet.contracts.facts import Usage
from septet.contracts.lanes import SessionSummary, SummariseCall
from septet.contracts.names import AGENT_NAMES, Verdict
from septet.contracts.steps import FinalizeCall, StepCall, StepResult
from septet.settings import Settings
from septet.system.masking import mask
from septet.system.own_process import before_end
from septet.telemetry.step_values import earlier_of, starts_since, usage_since

_WORK_ORDER: Final = "WorkOrder"
_EXPORT_SPAN: Final = "__septet_export_span"
_RESOURCE: Final = Resource.create({"service.name": "septet"})
_PATIENCE_SECONDS: Final = 2
"""How many seconds a collector that does not answer may delay a command."""
_MOST_TOOL_CALLS: Final = 500
_MOST_STREAM_BYTES: Final = 64 * 1024 * 1024
_CHUNK_BYTES: Final = 1024 * 1024
_ERROR: Final = "error.type"
_SECOND_NS: Final = 1_000_000_000


class _GuardedExporter(OTLPSpanExporter):
    """Exports spans with this process's keys masked, also in stacks and messages of errors.

    If payloads are sealed, no error text is exported, because it may quote people.
    """

    def __init__(self, address: str, *, withholds_words: bool) -> None:
        super().__init__(f"{address.rstrip('/')}/v1/traces", timeout=_PATIENCE_SECONDS)
        self._withholds_words: Final = withholds_words

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return super().export([self._guard(span) for span in spans])

    def _guard(self, span: ReadableSpan) -> ReadableSpan:
        says = None if self._withholds_words else span.status.description
        return ReadableSpan(
            span.name,
            span.context,
            span.parent,
            span.resource,
            _mask_values(span.attributes or {}),
            [self._guard_event(event) for event in span.events],
            span.links,
            span.kind,
            status=Status(span.status.status_code, says and mask(says)),
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=span.instrumentation_scope,
        )

    def _guard_event(self, event: Event) -> Event:
        attributes = event.attributes or {}
        if self._withholds_words:
            attributes = {"exception.type": str(attributes.get("exception.type", ""))}
        return Event(event.name, _mask_values(attributes), event.timestamp)


def _mask_values(attributes: Mapping[str, AttributeValue]) -> Attributes:
    return {name: mask(value) if isinstance(value, str) else value for name, value in attributes.items()}


class SpanRoad(NamedTuple):
    """The tracer of this process, and the processor that exports its spans."""

    tracer: Tracer
    processor: BatchSpanProcessor


@cache
def road_to(address: str, *, withholds_words: bool = False) -> SpanRoad:
    """Return the tracer and the processor for an OTLP collector, such as `http://127.0.0.1:4318`.

    With `withholds_words`, error texts are not exported.
    """
    exporter = _GuardedExporter(address, withholds_words=withholds_words)
    processor = BatchSpanProcessor(exporter, schedule_delay_millis=1000)
    provider = TracerProvider(resource=_RESOURCE, shutdown_on_exit=False)
    provider.add_span_processor(processor)
    before_end(provider.shutdown)
    return SpanRoad(provider.get_tracer("septet"), processor)


class Tracing(TracingInterceptor):
    """The SDK's tracing, which also begins a trace for a work order that was started without one."""

    def __init__(self, road: SpanRoad) -> None:
        super().__init__(road.tracer)
        self._processor: Final = road.processor

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[TracingWorkflowInboundInterceptor]:
        """Return the class that traces workflows and exports a work order's root span at its end."""
        super().workflow_interceptor_class(input)
        input.unsafe_extern_functions[_EXPORT_SPAN] = self._processor.on_end
        return _WorkOrderTracing

    def _completed_workflow_span(self, params: Any) -> Any:
        """Make a span for an event in a workflow, and return the workflow's span as the parent of later spans.

        If the worker is killed before it sends the span, the span is lost, because a replay does not make it
        again.
        """
        return None if super()._completed_workflow_span(params) is None else params.context


class _WorkOrderTracing(TracingWorkflowInboundInterceptor):
    """Traces one workflow; a replay computes the same ids, and exports nothing again.

    The ids come from Temporal's run ids. All runs of a work order share a trace, and each run has a root span.
    """

    _root: SpanContext | None = None
    _client: SpanContext | None = None
    """The span of the client that started the work order, if the client traces."""

    def _load_workflow_context_carrier(self) -> Any:
        carrier, about = super()._load_workflow_context_carrier(), workflow.info()
        if about.workflow_type != _WORK_ORDER:
            return carrier
        if self._root is None:
            client = trace.get_current_span(self.text_map_propagator.extract(carrier or {})).get_span_context()
            self._client = client if client.is_valid else None
            self._root = SpanContext(
                client.trace_id or UUID(about.first_execution_run_id).int,
                UUID(about.run_id).int % (1 << 64),  # the last half of the run's id
                is_remote=False,
                trace_flags=TraceFlags(TraceFlags.SAMPLED),
            )
            traceparent = f"00-{self._root.trace_id:032x}-{self._root.span_id:016x}-01"
            self._workflow_context_carrier = {"traceparent": traceparent}
        return self._workflow_context_carrier

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        """Execute the workflow, and export its span at its end."""
        try:
            result = await super().execute_workflow(input)
        except (FailureError, asyncio.CancelledError) as error:  # a cancel; leaving the cache counts as a replay
            self._export(type(error).__name__)
            raise
        self._export()
        return result

    def _export(self, error: str = "") -> None:
        about = workflow.info()
        if about.workflow_type != _WORK_ORDER or workflow.unsafe.is_replaying():
            return
        attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.agent.name": _WORK_ORDER,
            "temporalWorkflowID": about.workflow_id,
            "temporalRunID": about.run_id,
        }
        span = ReadableSpan(
            f"invoke_workflow {_WORK_ORDER}",
            self._root,
            self._client,
            _RESOURCE,
            {**attributes, _ERROR: error} if error else attributes,
            status=Status(StatusCode.ERROR, error) if error else Status(),
            start_time=int(about.workflow_start_time.timestamp() * _SECOND_NS),
            end_time=workflow.time_ns(),
        )
        workflow.extern_functions()[_EXPORT_SPAN](span)


@dataclass(frozen=True, slots=True)
class AgentTraces:
    """Makes spans of an activity's agent run and its tool calls, after the activity has ended."""

    tracer: Tracer
    state_dir: Path

    def begin(self) -> None:
        """Add the trace id to all log lines of the activity."""
        trace_id = trace.format_trace_id(trace.get_current_span().get_span_context().trace_id)
        structlog.contextvars.bind_contextvars(trace_id=trace_id)

    async def end(self, call: object, outcome: StepResult | SessionSummary) -> None:
        """Make spans of the activity's agent and its tool calls."""
        if isinstance(outcome, SessionSummary):
            if isinstance(call, SummariseCall) and outcome.usage != Usage():
                self.trace_summary(call, outcome)
        elif isinstance(call, StepCall | FinalizeCall) and starts_since(outcome, earlier_of(call)):
            await asyncio.to_thread(self.trace_run, call, outcome)

    def trace_run(self, call: StepCall | FinalizeCall, result: StepResult) -> None:
        """Export a span of the agent of a step or a finalizer, and a span of each of the agent's tool calls."""
        usage, seconds, earlier = result.usage, result.duration_seconds, earlier_of(call)
        started_ns = int(datetime.fromisoformat(result.timestamp).timestamp() * _SECOND_NS)
        if earlier is not None:
            usage = usage_since(usage, earlier.usage)
            started_ns += int(earlier.duration_seconds * _SECOND_NS)
            seconds -= earlier.duration_seconds
        ended_ns = started_ns + int(max(seconds, 0.0) * _SECOND_NS)
        step = call.call.name if isinstance(call, FinalizeCall) else call.name
        attributes = {
            **_use(AGENT_NAMES[result.step], result.agent, step, usage),
            "gen_ai.conversation.id": result.session_id,
            "gen_ai.response.model": result.model,
            "septet.outcome": str(result.verdict),
            "septet.parsed_by": result.parsed_by,
            "septet.recovered_by": result.recovered_by,
            "septet.run": result.run,
        }
        span = self._start(attributes, started_ns)
        if result.verdict is not Verdict.DONE:
            span.set_status(Status(StatusCode.ERROR, str(result.verdict)))
            span.set_attribute(_ERROR, str(result.verdict))
        inner = trace.set_span_in_context(span)
        tools = list(islice(self._tools(result), _MOST_TOOL_CALLS)) if earlier is None else []
        for number, tool in enumerate(tools):
            at = max(started_ns, ended_ns - len(tools) + number)
            of_tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
            self.tracer.start_span(f"execute_tool {tool}", inner, attributes=of_tool, start_time=at).end(at)
        span.end(ended_ns)

    def trace_summary(self, call: SummariseCall, summary: SessionSummary) -> None:
        """Export the span of the agent that summarised a session, from the activity's start to now."""
        use = _use(call.name, call.workspace.agent, call.name, summary.usage)
        session = {"gen_ai.conversation.id": call.session_id, "gen_ai.response.model": summary.model}
        self._start({**use, **session}, int(activity.info().started_time.timestamp() * _SECOND_NS)).end()

    def _start(self, attributes: Mapping[str, str | float | None], started_ns: int) -> Span:
        """Start a span for an agent below the activity's span; omit empty attributes."""
        known = {name: value for name, value in attributes.items() if value is not None}
        name = f"invoke_agent {known['gen_ai.agent.name']}"
        return self.tracer.start_span(name, kind=SpanKind.CLIENT, attributes=known, start_time=started_ns)

    def _tools(self, result: StepResult) -> Iterator[str]:
        """Yield the names of the tools that a run called, as its output stream shows; nothing without a stream."""
        adapter, size = ADAPTERS.get(result.agent), 0
        if adapter is None or not result.run:
            return
        transcript = adapter.transcript()
        try:
            with (self.state_dir / result.run / "stdout.jsonl").open("rb") as stream:
                while size < _MOST_STREAM_BYTES and (chunk := stream.read(_CHUNK_BYTES)):
                    size += len(chunk)
                    calls = (entry for entry in transcript.feed(chunk) if entry.kind == "tool_call")
                    yield from (call.tool[:100] or "unknown" for call in calls)
        except OSError:
            return


def _use(role: str, agent: str, step: str, usage: Usage) -> dict[str, str | float | None]:
    adapter = ADAPTERS.get(agent)
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": role,
        "gen_ai.provider.name": (adapter.capabilities.provider if adapter is not None else "") or agent,
        "gen_ai.usage.input_tokens": usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_write.input_tokens": usage.cache_write_tokens,
        "septet.agent": agent,
        "septet.cost_usd": usage.cost_usd,
        "septet.step": step,
    }


def tracing(settings: Settings, address: str) -> tuple[Tracing, AgentTraces]:
    """Return the interceptor that traces clients and workers, and the listener that traces agents."""
    road = road_to(address, withholds_words=settings.seals)
    return Tracing(road), AgentTraces(road.tracer, settings.state_dir)
