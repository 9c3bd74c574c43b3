"""A front of a Temporal server as in clouds and clusters: TLS, client certificates, and API keys."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from select import select
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hpack import Decoder

_LOOPBACK: Final = "127.0.0.1"
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD_BYTES: Final = 9
_HEADERS, _SETTINGS = 1, 4
_END_STREAM, _END_HEADERS = 1, 4
_READ_BYTES: Final = 65_536
_REFUSED: Final = (
    (b":status", b"200"), (b"content-type", b"application/grpc"),
    (b"grpc-status", b"16"), (b"grpc-message", b"Request unauthorized."),
)  # fmt: skip
"""Temporal Cloud's answer to an unknown key."""


class Pair(NamedTuple):
    certificate: Path
    key: Path


class Authority:
    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, folder.name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        extension = x509.BasicConstraints(ca=True, path_length=0)
        self.own = self._write("authority", self._name, self._key, extension)
        """The authority's own certificate, for those that trust it."""

    def sign(self, name: str) -> Pair:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        place = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(_LOOPBACK))])
        return self._write(name, subject, ec.generate_private_key(ec.SECP256R1()), place)

    def _write(
        self, name: str, subject: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType
    ) -> Pair:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name)
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        made = builder.add_extension(extension, critical=True).sign(self._key, hashes.SHA256())
        pair = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        pair.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return pair


@dataclass
class Front:
    address: str
    calls: list[dict[str, str]] = field(default_factory=list)

    @property
    def methods(self) -> set[str]:
        return {call[":path"].rpartition("/")[2] for call in self.calls}


class _Call(NamedTuple):
    stream: int
    headers: dict[str, str]


class _Calls:
    """The calls of a client on one HTTP/2 connection, from its bytes as they arrive."""

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._rest = b""
        self._skip = len(_PREFACE)

    def feed(self, data: bytes) -> list[_Call]:
        self._rest += data
        found = []
        while len(self._rest) >= self._skip + _HEAD_BYTES:
            head = self._rest[self._skip : self._skip + _HEAD_BYTES]
            end = self._skip + _HEAD_BYTES + int.from_bytes(head[:3], "big")
            if len(self._rest) < end:
                break
            if head[3] == _HEADERS:
                assert head[4] & ~_END_STREAM == _END_HEADERS, "a form of headers that this client does not use"
                fields = self._decoder.decode(self._rest[self._skip + _HEAD_BYTES : end])
                headers = {str(name): str(value) for name, value in fields}
                found.append(_Call(int.from_bytes(head[5:], "big"), headers))
            self._rest, self._skip = self._rest[end:], 0
        return found


@contextmanager
def serving_tls(
    server: Pair, *, upstream: str = "", clients_of: Authority | None = None, key: str | None = None
) -> Iterator[Front]:
    """Serve clients that have the key and a certificate by the authority."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*server)
    tls.set_alpn_protocols(["h2"])
    if clients_of is not None:
        tls.verify_mode = ssl.CERT_REQUIRED
        tls.load_verify_locations(clients_of.own.certificate)

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            with tls.wrap_socket(self.request, server_side=True, do_handshake_on_connect=False) as client:
                try:
                    client.do_handshake()
                    _serve(front, client, upstream, key)
                except ssl.SSLError:
                    _wait_for_end(client)
                except ConnectionError:
                    pass

    class Server(ThreadingTCPServer):
        daemon_threads = True

    with Server((_LOOPBACK, 0), Handler) as listening:
        front = Front(f"{_LOOPBACK}:{listening.server_address[1]}")
        thread = Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield front
        finally:
            listening.shutdown()
            thread.join()


def _wait_for_end(client: ssl.SSLSocket) -> None:
    """Wait until a refused client has read the reason: a close with unread bytes could overtake it."""
    raw = socket.socket(fileno=client.detach())
    with raw, suppress(OSError):
        raw.shutdown(socket.SHUT_WR)
        while raw.recv(_READ_BYTES):
            pass


def _serve(front: Front, client: ssl.SSLSocket, upstream: str, key: str | None) -> None:
    calls = _Calls()
    begun, first = b"", list[_Call]()
    while not first:
        begun += (data := client.recv(_READ_BYTES))
        if not data:
            return
        first = calls.feed(data)
    front.calls += (call.headers for call in first)
    if key is not None and first[0].headers.get("authorization") != f"Bearer {key}":
        fields = b"".join(b"\0" + _text(name) + _text(value) for name, value in _REFUSED)
        settings = _frame(_SETTINGS, 0, 0, b"")
        client.sendall(settings + _frame(_HEADERS, _END_STREAM | _END_HEADERS, first[0].stream, fields))
        while client.recv(_READ_BYTES):
            pass
        return
    host, _, port = upstream.rpartition(":")
    with socket.create_connection((host, int(port))) as behind:
        behind.sendall(begun)
        while True:
            ready = [client] if client.pending() else select([client, behind], [], [])[0]
            for end in ready:
                if not (data := end.recv(_READ_BYTES)):
                    return
                if end is client:
                    front.calls += (call.headers for call in calls.feed(data))
                    behind.sendall(data)
                else:
                    client.sendall(data)


def _frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return len(content).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + content


def _text(text: bytes) -> bytes:
    return bytes((len(text),)) + text
