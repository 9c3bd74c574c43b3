"""One connection from a guest to a network host, with the tokens that a model's answer reports."""

import re
import select
import socket
import ssl
import threading
import time
from contextlib import suppress

from septet.agents.proxy.network_log import IS_FULL, AskedHost, NetworkLog
from septet.agents.proxy.network_rules import Network, NetworkRefusalError, host_name
from septet.agents.proxy.request import RequestBody

HEAD_BYTES = 1 << 16
IDLE_SECONDS = 3600.0
CHUNK_BYTES = 1 << 16
END_OF_HEAD = b"\r\n\r\n"
ENOUGH_SECONDS = 0.2
"""The longest wait, in seconds, until cut connections have logged their bytes."""
USED = re.compile(
    rb'"(input_tokens|cache_read_input_tokens|cache_creation_input_tokens|prompt_tokens|promptTokenCount|inputTokens'
    rb"|cacheReadInputTokens|cacheWriteInputTokens|output_tokens|completion_tokens|candidatesTokenCount"
    rb'|thoughtsTokenCount|outputTokens)"\s*:\s*([0-9]{1,12})'
)
"""Finds the token counts of four APIs and Bedrock. A model's own text never matches: its quotes are escaped."""
OUTPUT = frozenset(
    {b"output_tokens", b"completion_tokens", b"candidatesTokenCount", b"thoughtsTokenCount", b"outputTokens"}
)
LONGEST = 64
"""The length, in bytes, of the longest name of a count with its number."""


class Connections:
    """The open connections of one guest, with the rules and the log for these connections."""

    def __init__(self, network: Network, log: NetworkLog) -> None:
        """Take the rules that decide on each request, and the log of the requests."""
        self.network = network
        self.log = log
        self.open_sockets: set[socket.socket] = set()
        self.guard = threading.Lock()
        self.is_over = False

    def add(self, connection: socket.socket) -> bool:
        """Add an open connection; return false after `cut`: the caller must then not use the connection."""
        with self.guard:
            self.open_sockets.add(connection)
            return not self.is_over

    def remove(self, connection: socket.socket) -> None:
        """Remove a connection that has ended."""
        with self.guard:
            self.open_sockets.discard(connection)

    def cut(self) -> None:
        """Close all connections, and wait briefly until their bytes are logged."""
        with self.guard:
            self.is_over = True
            for each in self.open_sockets:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
        bound = time.monotonic() + ENOUGH_SECONDS
        while self.open_sockets and time.monotonic() < bound:
            time.sleep(0.001)
        self.log.flush()


class SeenUsage:
    """The largest token counts that one answer has reported so far; in a stream, counts never fall."""

    def __init__(self) -> None:
        self.end = b""
        self.most: dict[bytes, int] = {}

    def take(self, data: bytes) -> None:
        """Read the next bytes of an answer, which may be cut anywhere."""
        text = self.end + data
        for name, number in USED.findall(text):
            self.most[name] = max(self.most.get(name, 0), int(number))
        self.end = text[-LONGEST:]

    @property
    def tokens(self) -> tuple[int, int]:
        """Two numbers: input tokens, including tokens from a cache, and output tokens."""
        output = sum(number for name, number in self.most.items() if name in OUTPUT)
        return sum(self.most.values()) - output, output


class Passage:
    """One connection from a guest to a network host, from the request to the end."""

    def __init__(self, connections: Connections, client: socket.socket, name: str, port: int) -> None:
        """Take the guest's connection, and the name and port of the host."""
        self.connections = connections
        self.client = client
        self.name = name
        self.port = port
        self.answer_first = b""
        """The bytes that the guest receives when the host is connected."""
        self.is_plain = True
        """Whether the guest's program understands an HTTP answer of the proxy."""
        self.is_https = False
        """Whether the proxy uses TLS on the connection to the host."""
        self.body: RequestBody | None = None
        """The body of the one request that is passed on; `None` for a tunnel."""
        self.request = ""
        """Method and path of a request to a model whose key stays outside the guest; empty for other requests."""
        self.usage: SeenUsage | None = None
        self.sent_bytes = self.received_bytes = 0

    def pass_on(self, head: bytes, rest: bytes) -> None:
        """Connect to the host, send `head` and `rest`, pass on bytes until the end, and log the request."""
        request = AskedHost(self.name, self.port, request=self.request)
        try:
            with self.connect() as host:
                self.begin(request)
                self.pass_between(host, head, rest)
        except NetworkRefusalError as error:
            request.refusal = str(error)
            words = f"Septet's sandbox does not let {self.name}:{self.port} through: {error}."
            self.refuse("403 Forbidden", f"{words} SEPTET_GUEST_HOSTS of the worker names what it does.")
        except OSError as error:
            if not self.received_bytes:
                self.refuse(
                    "502 Bad Gateway", f"{self.name}:{self.port} does not answer: {error.strerror or error}."
                )
        except ValueError as error:
            if not self.received_bytes:
                self.refuse("400 Bad Request", str(error))
        finally:
            tokens = self.usage.tokens if self.usage is not None else (0, 0)
            sent, received = self.sent_bytes, self.received_bytes
            self.connections.log.note(request, sent_bytes=sent, received_bytes=received, tokens=tokens)

    def begin(self, request: AskedHost) -> None:
        """Log the request as permitted; raise `NetworkRefusalError` if the log is full."""
        if not self.connections.log.begin(request):
            raise NetworkRefusalError(IS_FULL)

    def connect(self) -> socket.socket:
        """Return a connection to the host, with TLS if `is_https`."""
        tls = self.connections.network.tls
        if self.is_https and tls is None:
            raise OSError(0, "no certificate can be looked at")
        host = self.connections.network.connect(host_name(self.name), self.port, with_key=self.usage is not None)
        if not self.is_https or tls is None:
            return host
        try:
            return tls.wrap_socket(host, server_hostname=self.name)
        except OSError:
            host.close()
            raise

    def refuse(self, status: str, words: str) -> None:
        """Send the reason to the guest; do nothing on a forwarded port, whose client reads no HTTP answer."""
        if self.is_plain:
            answer(self.client, status, words)

    def pass_between(self, host: socket.socket, head: bytes, rest: bytes) -> None:
        """Send the head and the first bytes to the host, and pass on bytes in both directions."""
        try:
            if not self.connections.add(host):
                return
            if self.answer_first:
                self.client.sendall(self.answer_first)
            self.send(host, head + self.part_of(rest)[0])
            self.relay(host)
        finally:
            self.connections.remove(host)

    def send(self, host: socket.socket, data: bytes) -> None:
        """Send bytes to the host, and count the bytes."""
        host.sendall(data)
        self.sent_bytes += len(data)

    def part_of(self, data: bytes) -> tuple[bytes, bool]:
        """Return the bytes of `data` that belong to the request, and whether more bytes follow."""
        return (data, False) if self.body is None else self.body.take(data)

    def receive(self, data: bytes) -> None:
        """Send bytes of the host's answer to the guest; count the bytes and read the tokens."""
        if self.body is not None:
            self.body.hear(data)
        if self.usage is not None:
            self.usage.take(data)
        self.client.sendall(data)
        self.received_bytes += len(data)

    def relay(self, host: socket.socket) -> None:
        """Pass on bytes in both directions, until both directions have ended."""
        poller = select.poll()
        for each in (self.client, host):
            each.settimeout(IDLE_SECONDS)
            poller.register(each.fileno(), select.POLLIN)
        open_ones = 2
        while open_ones:
            ready = poller.poll(IDLE_SECONDS * 1000)
            if not ready:
                return
            for descriptor, _ in ready:
                is_host = descriptor == host.fileno()
                source, target = (host, self.client) if is_host else (self.client, host)
                data = receive(source)
                if not data and not is_host and self.is_https:
                    return  # a TLS connection cannot be closed in one direction
                if not data:
                    poller.unregister(descriptor)
                    open_ones -= 1
                    target.shutdown(socket.SHUT_WR)
                    continue
                if is_host:
                    self.receive(data)
                    continue
                part, is_more = self.part_of(data)
                if is_more and self.received_bytes:
                    return  # another request after the answer: its client connects anew
                self.send(host, part)


def receive(source: socket.socket) -> bytes:
    """Return the bytes that have arrived, including bytes that TLS has buffered."""
    data = source.recv(CHUNK_BYTES)
    while isinstance(source, ssl.SSLSocket) and data and source.pending():
        data += source.recv(source.pending())
    return data


def read_head(client: socket.socket) -> tuple[bytes, bytes]:
    """Return the head of a request, and the bytes that were read after the head."""
    data = b""
    while END_OF_HEAD not in data:
        more = client.recv(CHUNK_BYTES)
        if not more or len(data) > HEAD_BYTES:
            raise OSError
        data += more
    head, _, rest = data.partition(END_OF_HEAD)
    return head, rest


def answer(client: socket.socket, status: str, words: str) -> None:
    """Send an HTTP answer with this status and text; ignore a client that has closed the connection."""
    body = f"{words}\n".encode()
    fields = f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close"
    head = f"HTTP/1.1 {status}\r\n{fields}\r\n\r\n"
    with suppress(OSError):
        client.sendall(head.encode() + body)
