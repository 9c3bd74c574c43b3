"""git over HTTP and https on loopback: `git http-backend` with Basic authentication."""

import gzip
import os
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

from fakes.listening import QuietHandler, listening
from fakes.tls_front import Pair


@dataclass
class GitHttp:
    """A server of the bare repositories below `root`, for clients with the token."""

    root: Path
    token: str
    url: str = ""
    status: int = 0
    """The status of every answer; 0 answers truly."""
    readers: frozenset[str] = frozenset()
    """Tokens that may fetch but not push."""
    is_public: bool = False
    pair: Pair | None = None
    """The certificate of a server with TLS; `None` serves plain HTTP."""
    leads_to: str = ""
    """The beginning of the address to which all requests are redirected; empty redirects none."""
    renamed: dict[str, str] = field(default_factory=dict)
    """The new addresses of repositories by the paths whose requests are redirected."""
    seen: list[str] = field(default_factory=list)
    """The `Authorization` headers of the requests."""


@contextmanager
def serving_git(server: GitHttp) -> Iterator[GitHttp]:
    """Let the server answer on 127.0.0.1 during the block; its address is `url`."""

    class Handler(QuietHandler):
        def handle_any(self) -> None:
            content = body_of(self)
            given = self.headers.get("Authorization", "")
            server.seen.append(given)
            may_read = server.is_public or given in {_basic(token) for token in (server.token, *server.readers)}
            old = next((path for path in server.renamed if self.path.startswith(f"{path}/")), None)
            if old is not None:
                self.answer(301, {"Location": server.renamed[old] + self.path.removeprefix(old)}, b"")
            elif server.leads_to:
                self.answer(302, {"Location": server.leads_to + self.path}, b"")
            elif server.status:
                self.answer(server.status, {})
            elif not may_read:
                self.answer(401, {"WWW-Authenticate": 'Basic realm="git"'}, b"")
            elif given != _basic(server.token) and "git-receive-pack" in self.path:
                self.answer(403, {})
            else:
                self.answer(*run_backend(server.root, self.command, self.path, self.headers, content))

    with listening(Handler, server.pair) as server.url:
        yield server


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
    """Return the answer of `git http-backend` to a request: status, headers and body."""
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
