"""An OpenTelemetry collector on loopback, which takes spans over HTTP and hands them to tests."""

import gzip
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fakes.listening import QuietHandler, listening
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True)
class CollectedSpan:
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    started_ns: int
    ended_ns: int
    attributes: Mapping[str, Any]
    is_error: bool
    kind: str
    words: str
    """The text of its status and events."""


@dataclass
class Collector:
    url: str
    spans: list[CollectedSpan] = field(default_factory=list)

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.spans += map(_span, scope.spans)

    def named(self, name: str) -> list[CollectedSpan]:
        return [span for span in self.spans if span.name == name]


@contextmanager
def collector() -> Iterator[Collector]:
    class Handler(QuietHandler):
        protocol_version = "HTTP/1.0"  # an exporter keeps its connection for longer than the collector runs

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            known = self.path == "/v1/traces"
            if known:
                running.take(_plain(body, self.headers.get("Content-Encoding", "")))
            answer = ExportTraceServiceResponse().SerializeToString()
            self.answer(200 if known else 404, {"Content-Type": "application/x-protobuf"}, answer)

    with listening(Handler) as address:
        running = Collector(address)
        yield running


def _plain(body: bytes, encoding: str) -> bytes:
    return gzip.decompress(body) if encoding == "gzip" else body


def _span(span: Any) -> CollectedSpan:
    return CollectedSpan(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        started_ns=span.start_time_unix_nano,
        ended_ns=span.end_time_unix_nano,
        attributes={each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes},
        is_error=span.status.code == 2,
        kind=type(span).SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        words=f"{span.status.message} {span.events}",
    )
