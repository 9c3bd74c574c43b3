"""git over HTTP and https on loopback: `git http-backend` with Basic authentication."""

import gzip
import os
import ssl
import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from fakes.tls_front import Pair


@dataclass
class GitHttp:
    """A server of the bare repositories below `root`, for whoever knows the token."""

    root: Path
    token: str
    url: str = ""
    status: int = 0
    """Answered instead of the truth, when it is not 0."""
    readers: frozenset[str] = frozenset()
    """Tokens that may fetch and not push."""
    is_public: bool = False
    """Whoever asks may fetch."""
    pair: Pair | None = None
    """Its certificate, where it speaks TLS."""
    leads_to: str = ""
    """Where each request is led instead of answered, as the beginning of an address."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Where requests below these paths are led, as the address of the repository."""
    seen: list[str] = field(default_factory=list)
    """The `Authorization` headers that came in."""


@contextmanager
def serving_git(server: GitHttp) -> Iterator[GitHttp]:  # noqa: C901 -- the handler closes over its server
    """Let it answer on 127.0.0.1 for as long as the block lasts; its address is `url`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            content = body_of(self)
            given = self.headers.get("Authorization", "")
            server.seen.append(given)
            may_read = server.is_public or given in {_basic(token) for token in (server.token, *server.readers)}
            old = next((path for path in server.renamed if self.path.startswith(f"{path}/")), None)
            if old is not None:
                self._send(301, [("Location", server.renamed[old] + self.path.removeprefix(old))], b"")
            elif server.leads_to:
                self._send(302, [("Location", server.leads_to + self.path)], b"")
            elif server.status:
                self._send(server.status, [], b"")
            elif not may_read:
                self._send(401, [("WWW-Authenticate", 'Basic realm="git"')], b"")
            elif given != _basic(server.token) and "git-receive-pack" in self.path:
                self._send(403, [], b"")
            else:
                self._run_backend(content)

        def _run_backend(self, content: bytes) -> None:
            status, headers, body = run_backend(server.root, self.command, self.path, self.headers, content)
            self._send(status, list(headers.items()), body)

        def _send(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
            self.send_response(status)
            for name, value in (*headers, ("Content-Length", str(len(body)))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if server.pair is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*server.pair)
        http.socket = tls.wrap_socket(http.socket, server_side=True)
    server.url = f"http{'s' * (server.pair is not None)}://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def body_of(request: BaseHTTPRequestHandler) -> bytes:
    """Return the body of a request, which git sends in chunks and compressed."""
    if request.headers.get("Transfer-Encoding") == "chunked":
        chunks = []
        while size := int(request.rfile.readline(), 16):
            chunks.append(request.rfile.read(size))
            request.rfile.readline()
        request.rfile.readline()
        content = b"".join(chunks)
    else:
        content = request.rfile.read(int(request.headers.get("Content-Length", 0)))
    return gzip.decompress(content) if request.headers.get("Content-Encoding") == "gzip" else content


def run_backend(
    root: Path, method: str, path: str, headers: Message, content: bytes
) -> tuple[int, dict[str, str], bytes]:
    """Return what `git http-backend` answers to a request: status, headers and body."""
    parts = urlsplit(path)
    completed = subprocess.run(
        ["git", "http-backend"],
        input=content,
        capture_output=True,
        check=False,
        env={
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "REQUEST_METHOD": method,
            "PATH_INFO": parts.path,
            "QUERY_STRING": parts.query,
            "CONTENT_TYPE": headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(content)),
            "GIT_PROTOCOL": headers.get("Git-Protocol", ""),
            "REMOTE_USER": "septet",
            "REMOTE_ADDR": "127.0.0.1",
        },
    )
    head, _, body = completed.stdout.partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
    return int(fields.pop("Status", "200")[:3]), fields, body


def _basic(token: str) -> str:
    return "Basic " + b64encode(f"x-access-token:{token}".encode()).decode()
