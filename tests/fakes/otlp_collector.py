"""An OpenTelemetry collector on loopback: it takes spans over HTTP, and gives them to tests."""

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True)
class CollectedSpan:
    """A span as it came over the wire."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    started_ns: int
    ended_ns: int
    attributes: Mapping[str, Any]
    is_error: bool
    kind: str
    """Such as `INTERNAL`."""
    words: str
    """What its status and its events say, in one text."""


@dataclass
class Collector:
    """One that runs."""

    url: str
    spans: list[CollectedSpan] = field(default_factory=list)

    def take(self, body: bytes) -> None:
        """Read what an exporter has sent."""
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.spans += map(_span, scope.spans)

    def named(self, name: str) -> list[CollectedSpan]:
        """Return the spans of a name that have come so far."""
        return [span for span in self.spans if span.name == name]


@contextmanager
def collector() -> Iterator[Collector]:
    """Run a collector for as long as the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            known = self.path == "/v1/traces"
            if known:
                running.take(_plain(body, self.headers.get("Content-Encoding", "")))
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the library's own name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running = Collector(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


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
