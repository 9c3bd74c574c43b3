"""The proxy of one guest: a process that its supervisor forks, and the guest's only way out.

The proxy runs in the machine's network and listens on loopback in the guest's network. It permits what the order
names: tunnels (`CONNECT`) and plain HTTP on its own port, requests on ports that stand for models, and connections
to ports that stand for this machine's.
A thread serves each connection.
"""

import encodings.idna  # noqa: F401 -- TLS imports it for a host's name: see the package for why it does not then
import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Sequence

from septet.agents.proxy.model_port import ModelPort, RequestRefusal
from septet.agents.proxy.network_log import IS_FULL, AskedHost, NetworkLog
from septet.agents.proxy.network_rules import Network, NetworkRefusal, host_name, split_host
from septet.agents.proxy.request_body import RequestBody
from septet.agents.proxy.request_head import RequestHead, authority, write_head
from septet.agents.proxy.seen_usage import SeenUsage

MOST_CONNECTIONS = 128
HEAD_BYTES = 1 << 16
HEAD_SECONDS = 30.0
IDLE_SECONDS = 3600.0
CHUNK_BYTES = 1 << 16
END_OF_HEAD = b"\r\n\r\n"
HTTPS_PORT, HTTP_PORT = 443, 80
PLAIN = "http://"
BETWEEN_PROXIES = frozenset({b"host", b"connection", b"keep-alive", b"upgrade", b"te", b"trailer"})
ENOUGH_SECONDS = 0.2
"""The time in which cut connections log their bytes."""


class Proxy:
    """Serves one guest."""

    def __init__(self, network: Network, log: NetworkLog) -> None:
        """Permit what the order's network names, and log each request."""
        self.network = network
        self.log = log
        self.free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self.living: set[socket.socket] = set()
        self.guard = threading.Lock()
        self.is_over = False

    def serve(self, listeners: Sequence[socket.socket], control: socket.socket) -> None:
        """Serve until the supervisor ends or closes `control`, over which it may send the next turn's log file."""
        poller = select.poll()
        for each in (*listeners, control):
            poller.register(each.fileno(), select.POLLIN)
        places = zip(listeners, self.network.places, strict=True)
        ways_in = {each.fileno(): (each, place) for each, place in places}
        while True:
            for descriptor, _ in poller.poll():
                if descriptor == control.fileno():
                    if not self.take_log(control):
                        self.end()
                        return
                else:
                    self.accept(*ways_in[descriptor])

    def take_log(self, control: socket.socket) -> bool:
        """Receive the next turn's log file; return whether the proxy must continue."""
        try:
            told, descriptors, _, _ = socket.recv_fds(control, 16, 1)
        except OSError:
            return False
        if descriptors:
            self.log.change(descriptors[0])
        return bool(told)

    def accept(self, listener: socket.socket, place: tuple[str, int]) -> None:
        """Serve a connection in its own thread; close a connection above the limit."""
        try:
            client, _ = listener.accept()
        except OSError:
            return
        if not self.free.acquire(blocking=False):
            client.close()
            return
        try:
            threading.Thread(target=self.serve_client, args=(client, place), daemon=True).start()
        except RuntimeError:  # the machine has no thread left
            self.free.release()
            client.close()

    def end(self) -> None:
        """Cut all connections, and wait briefly until their bytes are logged."""
        with self.guard:
            self.is_over = True
            for each in self.living:
                try:
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue
        bound = time.monotonic() + ENOUGH_SECONDS
        while self.living and time.monotonic() < bound:
            time.sleep(0.001)
        self.log.flush()

    def serve_client(self, client: socket.socket, place: tuple[str, int]) -> None:
        """Serve one connection to its end; `place` is the address and port that accepted it."""
        _, port = place
        with self.guard:
            self.living.add(client)
        try:
            with client:
                if port == self.network.port:
                    self.serve_request(client)
                elif port in self.network.models:
                    self.serve_model(client, self.network.models[port])
                else:
                    passage = Passage(self, client, self.network.forwards[place], port)
                    passage.is_plain = False
                    passage.pass_on(b"", b"")
        except OSError:  # it went, or was cut
            return
        finally:
            with self.guard:
                self.living.discard(client)
            self.free.release()

    def serve_request(self, client: socket.socket) -> None:
        """Read a request, and pass it on or refuse it."""
        client.settimeout(HEAD_SECONDS)
        head, rest = read_head(client)
        try:
            request = RequestHead(head)
            body = RequestBody(request)
        except ValueError as error:
            answer(client, "400 Bad Request", str(error))
            return
        target = request.target.decode("latin-1")
        if request.method == "CONNECT":
            name, port = self.split(client, target, HTTPS_PORT)
            passage = Passage(self, client, name, port)
            passage.answer_first = b"HTTP/1.1 200 Connection established\r\n\r\n"
            passage.pass_on(b"", rest)
        elif target.lower().startswith(PLAIN):
            place, _, path = target[len(PLAIN) :].partition("/")
            name, port = self.split(client, place.rpartition("@")[2], HTTP_PORT)
            host = (b"Host", authority(name, port, HTTP_PORT))
            fields = (host, *request.without(BETWEEN_PROXIES), (b"Connection", b"close"))
            changed = write_head(request.method, f"/{path}".encode("latin-1"), fields)
            passage = Passage(self, client, name, port)
            passage.body = body
            passage.pass_on(changed, rest)
        else:
            answer(client, "400 Bad Request", "This is a proxy: ask it for http:// addresses, or by CONNECT.")

    def serve_model(self, client: socket.socket, model: ModelPort) -> None:
        """Pass a request on to the model, with the real key."""
        client.settimeout(HEAD_SECONDS)
        head, rest = read_head(client)
        try:
            request = RequestHead(head)
            body = RequestBody(request)
        except ValueError as error:
            answer(client, "400 Bad Request", str(error))
            return
        asked = f"{request.method} {request.target.decode('latin-1').partition('?')[0]}"
        try:
            changed = model.change_head(request)
        except RequestRefusal as error:
            self.log.note(AskedHost(model.name, model.host_port, str(error), asked))
            answer(client, "403 Forbidden", f"Septet's sandbox does not let {asked[:200]} through: {error}.")
            return
        passage = Passage(self, client, model.name, model.host_port)
        passage.request, passage.usage = asked, SeenUsage()
        passage.is_https = model.is_https
        passage.body = body
        passage.pass_on(changed, rest)

    def split(self, client: socket.socket, text: str, usual_port: int) -> tuple[str, int]:
        """Return the host and port of a request.

        Raises:
            OSError: The text names no host; the client has the answer.
        """
        try:
            return split_host(text, usual_port)
        except NetworkRefusal as refusal:
            self.log.note(AskedHost(text, 0, str(refusal)))
            answer(client, "400 Bad Request", f"{text[:200]}: {refusal}.")
            raise OSError from refusal


class Passage:
    """One connection to a host, from the request to its end."""

    def __init__(self, proxy: Proxy, client: socket.socket, name: str, port: int) -> None:
        """Connect a guest's connection to a host."""
        self.proxy = proxy
        self.client = client
        self.name = name
        self.port = port
        self.answer_first = b""
        """The bytes that the client receives first, when the host is connected."""
        self.is_plain = True
        """Whether the client understands an HTTP answer of the proxy."""
        self.is_https = False
        """Whether this process itself speaks TLS with the host."""
        self.body: RequestBody | None = None
        """The body of the one request that is passed on; `None` for a tunnel."""
        self.request = ""
        """Method and path of a request to a model whose key stays outside."""
        self.usage: SeenUsage | None = None
        """The usage that such a model reports."""
        self.sent_bytes = self.received_bytes = 0

    def pass_on(self, head: bytes, rest: bytes) -> None:
        """Connect, send the head and the bytes behind it, pass on bytes until one side ends, and log the request.

        Raises:
            OSError: The guest's side is gone.
        """
        request = AskedHost(self.name, self.port, request=self.request)
        try:
            with self.connect() as host:
                self.begin(request)
                self.pass_between(host, head, rest)
        except NetworkRefusal as error:
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
            self.proxy.log.note(request, sent_bytes=sent, received_bytes=received, tokens=tokens)

    def begin(self, request: AskedHost) -> None:
        """Log that the request is permitted.

        Raises:
            NetworkRefusal: The log is full.
        """
        if not self.proxy.log.begin(request):
            raise NetworkRefusal(IS_FULL)

    def connect(self) -> socket.socket:
        """Return a connection to the host.

        Raises:
            NetworkRefusal: The guest may not reach the host.
            OSError: The host does not answer, or its certificate is wrong.
        """
        tls = self.proxy.network.tls
        if self.is_https and tls is None:
            raise OSError(0, "no certificate can be looked at")
        host = self.proxy.network.connect(host_name(self.name), self.port, with_key=self.usage is not None)
        if not self.is_https or tls is None:
            return host
        try:
            return tls.wrap_socket(host, server_hostname=self.name)
        except OSError:
            host.close()
            raise

    def refuse(self, status: str, words: str) -> None:
        """Answer the guest with the reason, but not over a forwarded port, whose client reads no HTTP answer."""
        if self.is_plain:
            answer(self.client, status, words)

    def pass_between(self, host: socket.socket, head: bytes, rest: bytes) -> None:
        """Pass bytes in both directions.

        Raises:
            OSError: One side is gone.
            ValueError: The guest does not send the body of a request.
        """
        with self.proxy.guard:
            if self.proxy.is_over:
                return
            self.proxy.living.add(host)
        try:
            if self.answer_first:
                self.client.sendall(self.answer_first)
            self.send(host, head + self.part_of(rest)[0])
            self.relay(host)
        finally:
            with self.proxy.guard:
                self.proxy.living.discard(host)

    def send(self, host: socket.socket, data: bytes) -> None:
        """Send to the host."""
        host.sendall(data)
        self.sent_bytes += len(data)

    def part_of(self, data: bytes) -> tuple[bytes, bool]:
        """Return the part of the guest's bytes that belongs to the request, and whether more bytes follow it.

        Raises:
            ValueError: The bytes are not the body of a request.
        """
        return (data, False) if self.body is None else self.body.take(data)

    def receive(self, data: bytes) -> None:
        """Send the host's answer to the guest."""
        if self.body is not None:
            self.body.hear(data)
        if self.usage is not None:
            self.usage.take(data)
        self.client.sendall(data)
        self.received_bytes += len(data)

    def relay(self, host: socket.socket) -> None:
        """Pass on bytes; pass on the end of one direction too, and continue the other.

        Raises:
            OSError: One side is gone.
            ValueError: The guest does not send the body of a request.
        """
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
    """Return the bytes that have come, with those that TLS still buffers.

    Raises:
        OSError: The other side is gone.
    """
    data = source.recv(CHUNK_BYTES)
    while isinstance(source, ssl.SSLSocket) and data and source.pending():
        data += source.recv(source.pending())
    return data


def read_head(client: socket.socket) -> tuple[bytes, bytes]:
    """Return the head of a request, and what came behind it.

    Raises:
        OSError: There is none, or it is too long.
    """
    data = b""
    while END_OF_HEAD not in data:
        more = client.recv(CHUNK_BYTES)
        if not more or len(data) > HEAD_BYTES:
            raise OSError
        data += more
    head, _, rest = data.partition(END_OF_HEAD)
    return head, rest


def answer(client: socket.socket, status: str, words: str) -> None:
    """Answer a request in the proxy's own words; a client that has gone is no error."""
    body = f"{words}\n".encode()
    fields = f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close"
    head = f"HTTP/1.1 {status}\r\n{fields}\r\n\r\n"
    try:
        client.sendall(head.encode() + body)
    except OSError:
        return


def close_others(own: Sequence[int]) -> None:
    """Close every descriptor of this process, just forked, but these: locks and clients are its parent's."""
    last = 2
    for descriptor in sorted(own):
        os.closerange(last + 1, descriptor)
        last = max(last, descriptor)
    os.closerange(last + 1, os.sysconf("SC_OPEN_MAX"))
