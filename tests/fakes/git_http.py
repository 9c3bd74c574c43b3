"""git over HTTP on loopback: `git http-backend` with Basic authentication."""

import gzip
import os
import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit


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
            content = self._content()
            given = self.headers.get("Authorization", "")
            server.seen.append(given)
            may_read = given in {_basic(token) for token in (server.token, *server.readers)}
            if server.status:
                self._send(server.status, [], b"")
            elif not may_read:
                self._send(401, [("WWW-Authenticate", 'Basic realm="git"')], b"")
            elif given != _basic(server.token) and "git-receive-pack" in self.path:
                self._send(403, [], b"")
            else:
                self._run_backend(content)

        def _content(self) -> bytes:
            if self.headers.get("Transfer-Encoding") == "chunked":
                chunks = []
                while size := int(self.rfile.readline(), 16):
                    chunks.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                content = b"".join(chunks)
            else:
                content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            return gzip.decompress(content) if self.headers.get("Content-Encoding") == "gzip" else content

        def _run_backend(self, content: bytes) -> None:
            parts = urlsplit(self.path)
            completed = subprocess.run(
                ["git", "http-backend"],
                input=content,
                capture_output=True,
                check=False,
                env={
                    "PATH": os.environ["PATH"],
                    "GIT_PROJECT_ROOT": str(server.root),
                    "GIT_HTTP_EXPORT_ALL": "1",
                    "GIT_CONFIG_NOSYSTEM": "1",
                    "REQUEST_METHOD": self.command,
                    "PATH_INFO": parts.path,
                    "QUERY_STRING": parts.query,
                    "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                    "CONTENT_LENGTH": str(len(content)),
                    "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                    "REMOTE_USER": "septet",
                    "REMOTE_ADDR": "127.0.0.1",
                },
            )
            head, _, body = completed.stdout.partition(b"\r\n\r\n")
            headers = [tuple(line.split(": ", 1)) for line in head.decode().split("\r\n") if line]
            status = next((int(value[:3]) for name, value in headers if name == "Status"), 200)
            self._send(status, [(name, value) for name, value in headers if name != "Status"], body)

        def _send(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
            self.send_response(status)
            for name, value in (*headers, ("Content-Length", str(len(body)))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def _basic(token: str) -> str:
    return "Basic " + b64encode(f"x-access-token:{token}".encode()).decode()
