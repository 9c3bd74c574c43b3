"""HTTP servers of doubles; each answers on loopback during a block."""

import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class QuietHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_any(self) -> None:
        raise NotImplementedError

    def do_GET(self) -> None:
        """Handle a request: `http.server` calls this."""
        self.handle_any()

    do_POST = do_PATCH = do_PUT = do_DELETE = do_HEAD = do_GET  # noqa: N815 -- http.server calls them

    def answer(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_args: object) -> None:
        """Report no errors of clients that hung up."""


@contextmanager
def listening(
    handler: type[BaseHTTPRequestHandler], pair: tuple[Path, Path] | None = None, *, waits: bool = True
) -> Iterator[str]:
    """Serve on a free port, with TLS if a certificate and its key are given; the end may wait for open connections."""
    server = _Server(("127.0.0.1", 0), handler)
    server.daemon_threads = not waits
    if pair is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*pair)
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http{'s' * (pair is not None)}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
