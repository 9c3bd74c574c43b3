"""Traces by OpenTelemetry: one for each work order, from the client to each agent run and tool call.

Imported only where SEPTET_TRACES names a collector; the packages are those of `septet[otel]`.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import structlog
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer
from opentelemetry.util.types import Attributes
from temporalio import activity, workflow
from temporalio.contrib.opentelemetry import TracingInterceptor, TracingWorkflowInboundInterceptor
from temporalio.exceptions import ApplicationError, FailureError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    ExecuteWorkflowInput,
    Interceptor,
    WorkflowInterceptorClassInput,
)

from septet.agents.clis.registry import ADAPTERS
from septet.contracts.facts import Usage
from septet.contracts.lanes import SessionSummary, SummariseCall
from septet.contracts.names import AGENT_NAMES, Verdict
from septet.contracts.steps import FailureFacts, FinalizeCall, StepCall, StepResult
from septet.settings import Settings
from septet.system.masking import mask
from septet.system.own_process import before_end
from septet.telemetry.step_values import earlier_of, starts_since, usage_since

_WORK_ORDER: Final = "WorkOrder"
_EXPORT_ROOT: Final = "__septet_export_root"
_PATIENCE_SECONDS: Final = 2
"""A collector that does not answer holds no command up for longer."""
_MOST_TOOL_CALLS: Final = 500
_MOST_STREAM_BYTES: Final = 64 * 1024 * 1024
_CHUNK_BYTES: Final = 1024 * 1024
_KIND: Final = "exception.type"
_ERROR: Final = "error.type"
_SECOND: Final = 1_000_000_000
"""In nanoseconds, the unit of spans."""

_next_ids: ContextVar[tuple[int, int] | None] = ContextVar("next_ids", default=None)
"""The trace and the span that the next span is, where they are known before it begins."""


class _KnownIds(RandomIdGenerator):
    """Gives the root of a work order's trace the ids that everything below it already names."""

    def generate_trace_id(self) -> int:
        """Return the trace's id."""
        return ids[0] if (ids := _next_ids.get()) is not None else super().generate_trace_id()

    def generate_span_id(self) -> int:
        """Return the span's id."""
        return ids[1] if (ids := _next_ids.get()) is not None else super().generate_span_id()


class _GuardedExporter(SpanExporter):
    """Exports spans without the keys of this process; stacks also quote what caused an error.

    Where words are withheld, it exports nothing of what errors say, which may quote issues, answers and people.
    """

    def __init__(self, following: SpanExporter, *, withholds_words: bool) -> None:
        self._following: Final = following
        self._withholds_words: Final = withholds_words

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Hand the spans on."""
        return self._following.export([self._guard(span) for span in spans])

    def shutdown(self) -> None:
        """End the exporter that they go to."""
        self._following.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Have everything sent."""
        return self._following.force_flush(timeout_millis)

    def _guard(self, span: ReadableSpan) -> ReadableSpan:
        events, says = [_mask_event(event) for event in span.events], span.status.description
        if self._withholds_words:
            events, says = [_without_words(event) for event in span.events], None
        return ReadableSpan(
            span.name,
            span.context,
            span.parent,
            span.resource,
            _mask_attributes(span.attributes),
            events,
            span.links,
            span.kind,
            status=Status(span.status.status_code, says and mask(says)),
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=span.instrumentation_scope,
        )


def _without_words(event: Event) -> Event:
    return Event(event.name, {_KIND: str((event.attributes or {}).get(_KIND, ""))}, event.timestamp)


def _mask_event(event: Event) -> Event:
    return Event(event.name, _mask_attributes(event.attributes), event.timestamp)


def _mask_attributes(attributes: Attributes) -> Attributes:
    return {name: mask(value) if isinstance(value, str) else value for name, value in (attributes or {}).items()}


@cache
def tracer_to(address: str, *, withholds_words: bool = False) -> Tracer:
    """Return the tracer of this process, whose spans go to an OTLP collector over HTTP.

    Args:
        address: The collector's, such as `http://127.0.0.1:4318`.
        withholds_words: Whether the messages of errors stay here.
    """
    exporter = OTLPSpanExporter(f"{address.rstrip('/')}/v1/traces", timeout=_PATIENCE_SECONDS)
    guarded = _GuardedExporter(exporter, withholds_words=withholds_words)
    provider = TracerProvider(
        resource=Resource.create({"service.name": "septet"}), id_generator=_KnownIds(), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(guarded, schedule_delay_millis=1000))
    before_end(provider.shutdown)
    return provider.get_tracer("septet")


@dataclass(frozen=True, slots=True)
class _Root:
    """The span of a whole work order: what it is a part of, where it lies, and how it ended."""

    trace_id: str
    span_id: str
    parent: Mapping[str, list[str] | str]
    started_ns: int
    ended_ns: int
    attributes: Mapping[str, str]
    error: str = ""


class Tracing(TracingInterceptor):
    """The SDK's tracing; a work order has a trace also where Temporal's own command line has started it."""

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002 -- the SDK's own name
    ) -> type[TracingWorkflowInboundInterceptor]:
        """Return the tracing of workflows, which hands the root's span out when a work order ends."""
        super().workflow_interceptor_class(input)
        input.unsafe_extern_functions[_EXPORT_ROOT] = self._export_root
        return _WorkOrderTracing

    def _completed_workflow_span(self, params: Any) -> Any:  # noqa: ANN401 -- the SDK's own
        """Make a span of a moment of a workflow; what begins there lies under the workflow itself.

        A worker that is killed may not have sent the moment's span, and a replay does not make it again.
        """
        is_made = super()._completed_workflow_span(params) is not None
        return params.context if is_made else None

    def _export_root(self, root: _Root) -> None:
        """Hand out the span of a work order that has ended, with the ids that its parts know it by."""
        context = self.text_map_propagator.extract(root.parent) if root.parent else None
        token = _next_ids.set((int(root.trace_id, 16), int(root.span_id, 16)))
        try:
            span = self.tracer.start_span(
                f"invoke_workflow {_WORK_ORDER}",
                context,
                kind=SpanKind.INTERNAL,
                attributes=root.attributes,
                start_time=root.started_ns,
            )
        finally:
            _next_ids.reset(token)
        if root.error:
            span.set_status(Status(StatusCode.ERROR, root.error))
            span.set_attribute(_ERROR, root.error)
        span.end(root.ended_ns)


class _WorkOrderTracing(TracingWorkflowInboundInterceptor):
    """Tracing within a workflow: nothing here differs in a replay, and nothing is handed out again by one.

    The ids follow from those of Temporal's runs. All runs of a work order are in one trace, and each has a root.
    """

    _parent: Mapping[str, list[str] | str] | None = None

    def _load_workflow_context_carrier(self) -> Any:  # noqa: ANN401 -- the SDK's own
        if workflow.info().workflow_type != _WORK_ORDER:
            return super()._load_workflow_context_carrier()
        if self._parent is None:
            self._parent = super()._load_workflow_context_carrier() or {}
            trace_id, span_id = self._ids()
            self._workflow_context_carrier = {"traceparent": f"00-{trace_id}-{span_id}-01"}
        return self._workflow_context_carrier

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002, ANN401 -- the SDK's own
        """Execute it, and hand out its span when it has ended."""
        try:
            result = await super().execute_workflow(input)
        except (FailureError, asyncio.CancelledError) as error:  # a cancel; leaving the cache counts as a replay
            self._hand_out(type(error).__name__)
            raise
        self._hand_out()
        return result

    def _ids(self) -> tuple[str, str]:
        """Return the ids of the trace and of this run's root: a client's trace goes on, if any."""
        about = workflow.info()
        client = str((self._parent or {}).get("traceparent", "")).split("-")
        trace_id = client[1] if len(client) > 1 else about.first_execution_run_id.replace("-", "")
        return trace_id, about.run_id.replace("-", "")[-16:]

    def _hand_out(self, error: str = "") -> None:
        about = workflow.info()
        if about.workflow_type != _WORK_ORDER or workflow.unsafe.is_replaying():
            return
        trace_id, span_id = self._ids()
        attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.agent.name": _WORK_ORDER,
            "temporalWorkflowID": about.workflow_id,
            "temporalRunID": about.run_id,
        }
        started = int(about.workflow_start_time.timestamp() * _SECOND)
        root = _Root(trace_id, span_id, self._parent or {}, started, workflow.time_ns(), attributes, error)
        workflow.extern_functions()[_EXPORT_ROOT](root)


@dataclass(frozen=True, slots=True)
class AgentTraces(Interceptor):
    """Makes spans of agent runs and their tool calls, when the activity that they belong to has ended."""

    tracer: Tracer
    state_dir: Path

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 -- the SDK's own name
        """Wrap the execution of activities."""
        return _AgentTracesInbound(next, self)

    def trace_run(self, call: StepCall | FinalizeCall, result: StepResult) -> None:
        """Hand out the span of the agent of a step or a finalizer, and of its tool calls."""
        run = AgentSpan.of(call, result)
        span = self._start(run)
        if result.verdict is not Verdict.DONE:
            span.set_status(Status(StatusCode.ERROR, str(result.verdict)))
            span.set_attribute(_ERROR, str(result.verdict))
        inner = trace.set_span_in_context(span)
        tools = list(self._tools(result)) if run.is_whole else []
        for number, tool in enumerate(tools):
            at = max(run.started_ns, run.ended_ns - len(tools) + number)
            attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
            child = self.tracer.start_span(f"execute_tool {tool}", inner, attributes=attributes, start_time=at)
            child.end(at)
        span.end(run.ended_ns)

    def trace_summary(self, call: SummariseCall, summary: SessionSummary, began_at: datetime) -> None:
        """Hand out the span of the agent that summarised a lane's session, from `began_at` until now."""
        run = AgentSpan.of_summary(call, summary, int(began_at.timestamp() * _SECOND), time.time_ns())
        self._start(run).end(run.ended_ns)

    def _start(self, run: "AgentSpan") -> trace.Span:
        context = trace.set_span_in_context(trace.get_current_span())
        return self.tracer.start_span(
            run.name, context, kind=SpanKind.CLIENT, attributes=run.attributes, start_time=run.started_ns
        )

    def _tools(self, result: StepResult) -> Iterator[str]:
        """Yield the tools that a run called, from its stream; nothing where that is gone."""
        adapter, calls, size = ADAPTERS.get(result.agent), 0, 0
        if adapter is None or not result.run:
            return
        transcript = adapter.transcript()
        try:
            with (self.state_dir / result.run / "stdout.jsonl").open("rb") as stream:
                while size < _MOST_STREAM_BYTES and (chunk := stream.read(_CHUNK_BYTES)):
                    size += len(chunk)
                    for entry in transcript.feed(chunk):
                        if entry.kind == "tool_call" and calls < _MOST_TOOL_CALLS:
                            calls += 1
                            yield entry.tool[:100] or "unknown"
        except OSError:
            return


class _AgentTracesInbound(ActivityInboundInterceptor):
    def __init__(self, following: ActivityInboundInterceptor, traces: AgentTraces) -> None:
        super().__init__(following)
        self._traces = traces

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002, ANN401 -- the SDK's own
        """Execute it, and make spans of what its agent did; its trace's id is in all that its task logs."""
        call = input.args[0] if input.args else None
        trace_id = trace.format_trace_id(trace.get_current_span().get_span_context().trace_id)
        structlog.contextvars.bind_contextvars(trace_id=trace_id)
        try:
            result = await self.next.execute_activity(input)
        except ApplicationError as error:
            facts = error.details[0] if error.details else None
            if isinstance(facts, FailureFacts) and facts.result is not None:
                await self._trace(call, facts.result)
            raise
        if isinstance(result, StepResult):
            await self._trace(call, result)
        elif isinstance(call, SummariseCall) and isinstance(result, SessionSummary) and result.usage != Usage():
            self._traces.trace_summary(call, result, activity.info().started_time)
        return result

    async def _trace(self, call: object, result: StepResult) -> None:
        if isinstance(call, StepCall | FinalizeCall) and starts_since(result, earlier_of(call)):
            await asyncio.to_thread(self._traces.trace_run, call, result)


@dataclass(frozen=True, slots=True)
class AgentSpan:
    """The span of an agent run, by the conventions for generative AI; it holds no text of users or models."""

    name: str
    started_ns: int
    ended_ns: int
    attributes: Mapping[str, str | int | float] = field(default_factory=dict)
    is_whole: bool = True
    """Whether it is all that its result tells, and not what came after an earlier activity of the same try."""

    @classmethod
    def of(cls, call: StepCall | FinalizeCall, result: StepResult) -> "AgentSpan":
        """Return the span of what a step's or a finalizer's agent did."""
        role = AGENT_NAMES[result.step]
        started = int(datetime.fromisoformat(result.timestamp).timestamp() * _SECOND)
        usage, seconds, earlier = result.usage, result.duration_seconds, earlier_of(call)
        if earlier is not None:
            usage = usage_since(usage, earlier.usage)
            started += int(earlier.duration_seconds * _SECOND)
            seconds -= earlier.duration_seconds
        step = call.call.name if isinstance(call, FinalizeCall) else call.name
        attributes = {
            **_use(role, result.agent, step, usage),
            "septet.outcome": str(result.verdict),
            "septet.run": result.run,
        }
        optional = {
            "gen_ai.conversation.id": result.session_id,
            "gen_ai.response.model": result.model,
            "septet.recovered_by": result.recovered_by,
            "septet.parsed_by": result.parsed_by,
        }
        attributes |= {name: value for name, value in optional.items() if value is not None}
        ended = started + int(max(seconds, 0.0) * _SECOND)
        return cls(f"invoke_agent {role}", started, ended, attributes, is_whole=earlier is None)

    @classmethod
    def of_summary(
        cls, call: SummariseCall, summary: SessionSummary, started_ns: int, ended_ns: int
    ) -> "AgentSpan":
        """Return the span of the agent that summarised a lane's session."""
        attributes = {
            **_use(call.name, call.workspace.agent, call.name, summary.usage),
            "gen_ai.conversation.id": call.session_id,
        }
        if summary.model is not None:
            attributes["gen_ai.response.model"] = summary.model
        return cls(f"invoke_agent {call.name}", started_ns, ended_ns, attributes)


def _use(role: str, agent: str, step: str, usage: Usage) -> dict[str, str | int | float]:
    """Return the attributes of every agent run: whose it is, and what it used."""
    adapter = ADAPTERS.get(agent)
    attributes: dict[str, str | int | float] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": role,
        "gen_ai.provider.name": (adapter.capabilities.provider if adapter is not None else "") or agent,
        "gen_ai.usage.input_tokens": usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_write.input_tokens": usage.cache_write_tokens,
        "septet.agent": agent,
        "septet.step": step,
    }
    return attributes if usage.cost_usd is None else {**attributes, "septet.cost_usd": usage.cost_usd}


def tracing(settings: Settings, address: str) -> tuple[Tracing, AgentTraces]:
    """Return the interceptors for traces: of clients and workers, and inside of that of agents."""
    tracer = tracer_to(address, withholds_words=settings.seals)
    return Tracing(tracer), AgentTraces(tracer, settings.state_dir)
