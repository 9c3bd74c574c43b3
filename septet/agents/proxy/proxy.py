"""The proxy of one guest: a process that its supervisor forks, and the guest's only way to the network.

The proxy runs in the machine's network and listens on loopback in the guest's network. It permits only what the
order names. The proxy's own port takes tunnels (`CONNECT`) and plain HTTP. Model ports take requests to models.
Forwarded ports lead to ports of this machine. A thread serves each connection.
"""

import encodings.idna  # noqa: F401 -- TLS would import it after the fork, see the package
import select
import socket
import threading
from collections.abc import Sequence

from septet.agents.proxy.model_port import ModelPort, RequestRefusalError
from septet.agents.proxy.network_log import AskedHost, NetworkLog
from septet.agents.proxy.network_rules import Network, NetworkRefusalError, split_host
from septet.agents.proxy.passage import Connections, Passage, SeenUsage, answer, read_head
from septet.agents.proxy.request import RequestBody, RequestHead, authority, write_head

MOST_CONNECTIONS = 128
HTTPS_PORT, HTTP_PORT = 443, 80
PLAIN = "http://"
BETWEEN_PROXIES = frozenset({b"host", b"connection", b"keep-alive", b"upgrade", b"te", b"trailer"})


class Proxy:
    """The server for the connections of one guest."""

    def __init__(self, network: Network, log: NetworkLog) -> None:
        """Take the rules that decide on each request, and the log of the requests."""
        self.network = network
        self.log = log
        self.connections = Connections(network, log)
        self.free = threading.BoundedSemaphore(MOST_CONNECTIONS)

    def serve(self, listeners: Sequence[socket.socket], control: socket.socket) -> None:
        """Serve until the supervisor ends or closes `control`, which also brings each later turn's log file."""
        poller = select.poll()
        for each in (*listeners, control):
            poller.register(each.fileno(), select.POLLIN)
        places = zip(listeners, self.network.places, strict=True)
        ways_in = {each.fileno(): (each, place) for each, place in places}
        while True:
            for descriptor, _ in poller.poll():
                if descriptor == control.fileno():
                    if not self.take_log(control):
                        self.connections.cut()
                        return
                else:
                    self.accept(*ways_in[descriptor])

    def take_log(self, control: socket.socket) -> bool:
        """Receive the log file of the next turn; return false if the supervisor has closed the socket."""
        try:
            told, descriptors, _, _ = socket.recv_fds(control, 16, 1)
        except OSError:
            return False
        if descriptors:
            self.log.change(descriptors[0])
        return bool(told)

    def accept(self, listener: socket.socket, place: tuple[str, int]) -> None:
        """Accept a connection and serve it in a new thread; close the connection if too many are open."""
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

    def serve_client(self, client: socket.socket, place: tuple[str, int]) -> None:
        """Serve one connection to its end; `place` is the address and port at which the guest connected."""
        _, port = place
        self.connections.add(client)
        try:
            with client:
                if port == self.network.port:
                    self.serve_request(client)
                elif port in self.network.models:
                    self.serve_model(client, self.network.models[port])
                else:
                    passage = Passage(self.connections, client, self.network.forwards[place], port)
                    passage.is_plain = False
                    passage.pass_on(b"", b"")
        except OSError:  # the client is gone, or was cut
            return
        finally:
            self.connections.remove(client)
            self.free.release()

    def serve_request(self, client: socket.socket) -> None:
        """Read a request on the proxy's own port; pass the request on or refuse it."""
        given = read_request(client)
        if given is None:
            return
        request, body, rest = given
        target = request.target.decode("latin-1")
        if request.method == "CONNECT":
            name, port = self.split(client, target, HTTPS_PORT)
            passage = Passage(self.connections, client, name, port)
            passage.answer_first = b"HTTP/1.1 200 Connection established\r\n\r\n"
            passage.pass_on(b"", rest)
        elif target.lower().startswith(PLAIN):
            place, _, path = target[len(PLAIN) :].partition("/")
            name, port = self.split(client, place.rpartition("@")[2], HTTP_PORT)
            host = (b"Host", authority(name, port, HTTP_PORT))
            fields = (host, *request.without(BETWEEN_PROXIES), (b"Connection", b"close"))
            changed = write_head(request.method, f"/{path}".encode("latin-1"), fields)
            passage = Passage(self.connections, client, name, port)
            passage.body = body
            passage.pass_on(changed, rest)
        else:
            answer(client, "400 Bad Request", "This is a proxy: ask it for http:// addresses, or by CONNECT.")

    def serve_model(self, client: socket.socket, model: ModelPort) -> None:
        """Pass a request on to a model, with the real key."""
        given = read_request(client)
        if given is None:
            return
        request, body, rest = given
        asked = f"{request.method} {request.target.decode('latin-1').partition('?')[0]}"
        try:
            changed = model.change_head(request)
        except RequestRefusalError as error:
            self.log.note(AskedHost(model.name, model.host_port, str(error), asked))
            answer(client, "403 Forbidden", f"Septet's sandbox does not let {asked[:200]} through: {error}.")
            return
        passage = Passage(self.connections, client, model.name, model.host_port)
        passage.request, passage.usage = asked, SeenUsage()
        passage.is_https = model.is_https
        passage.body = body
        passage.pass_on(changed, rest)

    def split(self, client: socket.socket, text: str, usual_port: int) -> tuple[str, int]:
        """Return the host and port in `text`; if they are invalid, answer the guest and raise `OSError`."""
        try:
            return split_host(text, usual_port)
        except NetworkRefusalError as refusal:
            self.log.note(AskedHost(text, 0, str(refusal)))
            answer(client, "400 Bad Request", f"{text[:200]}: {refusal}.")
            raise OSError from refusal


def read_request(client: socket.socket) -> tuple[RequestHead, RequestBody, bytes] | None:
    """Return a request's head, its body's reader, and the bytes after the head; `None` for an invalid request."""
    client.settimeout(30.0)
    head, rest = read_head(client)
    try:
        request = RequestHead(head)
        return request, RequestBody(request), rest
    except ValueError as error:
        answer(client, "400 Bad Request", str(error))
        return None
