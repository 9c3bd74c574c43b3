"""Ways out of a guest's network: direct ways, and ways by its proxy to a server of this machine that is not allowed."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace

from fakes.attack_tables import Attack
from fakes.guests import CANARY

from septet.agents.clis.adapter import Invocation
from septet.agents.clis.adapter import Machine as Host
from septet.agents.clis.registry import adapter_for
from septet.agents.guest.description import Description
from septet.agents.guest.network import FIRST_MODEL_PORT, ModelKey, NamedHost, OwnNetwork, worthless_key
from septet.agents.guest.sandbox_parts import HostNetwork, Protection
from septet.agents.sandbox.model_hosts import model_keys

_OWN_NETWORK = "a private network"
_ADDRESSES = "no address of this machine, whatever a name resolves to"
_LIST = "a list of hosts, by name and port"
_KEY = "keys are inserted only where CLIs send keys"
_REWRITTEN = "each request is rewritten for the host that is allowed"
_ASKED = "a list of requests for each CLI, by method and path"
_PLAIN_PATHS = "paths that every server reads in the same way"
_ONE_KEY = "no key but the one that stands in"
_PORT_ALONE = "only its port leads to a model whose key stays outside"
_ALL_OF_THEM = ("GET /", "POST /")
_PRIVATE = "no private address, whatever a name resolves to"
_STANDS_IN = worthless_key(0)
_SECOND = "'', 'GET / HTTP/1.1', 'Host: other.example'"
PORT_OF_NAMES = 8443
"""The port of the hosts of `NAMES`."""
NAMES = {"private.example": "10.1.2.3", "metadata.example": "169.254.169.254"}
"""Hosts in a network around the guest's proxy."""


@dataclass(frozen=True)
class Servers:
    """The servers of the machine with the canary, and a server without it in the place of the worker's model."""

    tcp: int
    udp: int
    model: int
    gateway: int
    """Returns the request, and the canary for another site than the allowed site."""
    abstract: str


@dataclass(frozen=True)
class NetworkRoute(Attack):
    """A way out, whose program may use the servers' ports."""

    seen: Callable[[Servers], Protection]
    """The guest's network."""
    without: Callable[[Servers], Protection]
    """The network without the one protection."""

    def change(self, network: Protection) -> Callable[[Description], Description]:
        return lambda description: replace(
            description,
            protections=tuple(
                network if isinstance(each, OwnNetwork) else each for each in description.protections
            ),
        )


def _straight(name: str, attack: str, program: str) -> NetworkRoute:
    return NetworkRoute(name, attack, program, _OWN_NETWORK, lambda _: OwnNetwork(), lambda _: HostNetwork())


def _by_name(name: str, host: str, words: str) -> NetworkRoute:
    """Request from the proxy a host that a careless worker allowed."""
    return NetworkRoute(
        name,
        f"have the proxy connect to this machine, {words}",
        _tunnel(host),
        _ADDRESSES,
        lambda servers: OwnNetwork((NamedHost(_plain(host), servers.tcp),)),
        lambda servers: OwnNetwork((), (NamedHost(_plain(host), servers.tcp),)),
    )


def _unnamed(name: str, attack: str, program: str) -> NetworkRoute:
    """Request from the proxy a host beside the worker's own model."""
    return NetworkRoute(
        name,
        attack,
        program,
        _LIST,
        lambda servers: OwnNetwork((), (NamedHost("127.0.0.1", servers.model),)),
        lambda servers: OwnNetwork(
            (), (NamedHost("127.0.0.1", servers.model), NamedHost("127.0.0.1", servers.tcp))
        ),
    )


def _reflected(name: str, attack: str, header: str) -> NetworkRoute:
    """Send the worthless key to the model's port in a header that is not for keys."""

    def network(servers: Servers, *headers: str) -> OwnNetwork:
        model = ModelKey(
            FIRST_MODEL_PORT, f"http://127.0.0.1:{servers.gateway}", (CANARY,), headers, ("POST /v1",)
        )
        return OwnNetwork((), (NamedHost("127.0.0.1", servers.gateway),), models=(model,))

    program = f"ask({FIRST_MODEL_PORT}, 'POST /v1 HTTP/1.1', '{header}: {_STANDS_IN}')"
    return NetworkRoute(name, attack, program, _KEY, network, lambda servers: network(servers, header))


def _other_site(name: str, attack: str, program: str) -> NetworkRoute:
    """Request another site of an allowed server; without the proxy the server answers."""

    def network(servers: Servers) -> OwnNetwork:
        model = ModelKey(FIRST_MODEL_PORT, f"http://127.0.0.1:{servers.gateway}", ("key",), requests=_ALL_OF_THEM)
        return OwnNetwork((), (NamedHost("127.0.0.1", servers.gateway),), models=(model,))

    return NetworkRoute(name, attack, program, _REWRITTEN, network, lambda _: HostNetwork())


def model_of(cli: str, port: int) -> ModelKey:
    """Return the model of a CLI's adapter at a server of this machine, with the canary as its key."""
    variables = {
        "claude": {"ANTHROPIC_API_KEY": CANARY},
        "codex": {"CODEX_API_KEY": CANARY},
        "gemini": {"GEMINI_API_KEY": CANARY, "GOOGLE_GEMINI_BASE_URL": "https://models.example"},
        "copilot": {"COPILOT_PROVIDER_API_KEY": CANARY, "COPILOT_PROVIDER_BASE_URL": "https://models.example"},
        "opencode": {"ANTHROPIC_API_KEY": CANARY},
    }
    host = Host({"HOME": "/nonexistent", **variables[cli]})
    (model,) = model_keys(adapter_for(cli), host, Invocation((cli,), host.env, b""))
    return replace(model, address=f"http://127.0.0.1:{port}/team-a")


def _asked(name: str, attack: str, cli: str, request: str) -> NetworkRoute:
    """Send a request to a model's port that its CLI never sends; without the list the server echoes the key."""

    def network(servers: Servers, *more: str) -> OwnNetwork:
        model = model_of(cli, servers.gateway)
        return OwnNetwork(
            models=(replace(model, requests=(*model.requests, *more)),), own_hosts=_own(servers.gateway)
        )

    program = f"ask({FIRST_MODEL_PORT}, {f'{request} HTTP/1.1'!r}, 'x-api-key: {_STANDS_IN}')"
    return NetworkRoute(name, attack, program, _ASKED, network, lambda servers: network(servers, request))


def _beside(name: str, attack: str, cli: str, protection: str, *lines: str) -> NetworkRoute:
    """Request from a model's port another team's or account's service; without the proxy the server answers."""

    def network(servers: Servers) -> OwnNetwork:
        return OwnNetwork(models=(model_of(cli, servers.gateway),), own_hosts=_own(servers.gateway))

    program = f"ask({FIRST_MODEL_PORT}, *{lines!r})"
    return NetworkRoute(name, attack, program, protection, network, lambda _: HostNetwork())


def _past_the_port(name: str, attack: str, cli: str, program: str) -> NetworkRoute:
    """Reach a model's host by another way than its port, which a CLI may use if the guest has the key."""

    def network(servers: Servers) -> OwnNetwork:
        return OwnNetwork(models=(model_of(cli, servers.tcp),), own_hosts=_own(servers.tcp))

    return NetworkRoute(
        name, attack, program, _PORT_ALONE, network, lambda servers: OwnNetwork((), _own(servers.tcp))
    )


def _own(port: int) -> tuple[NamedHost, ...]:
    return (NamedHost("127.0.0.1", port),)


def _resolved(name: str, host: str, words: str) -> NetworkRoute:
    """Request from the proxy a host of the network around it that a careless worker allowed."""
    named = NamedHost(host, PORT_OF_NAMES)
    return NetworkRoute(
        name,
        f"have the proxy connect to {words}, by a name",
        f"by_proxy('CONNECT {named} HTTP/1.1')",
        _PRIVATE,
        lambda _: OwnNetwork((named,)),
        lambda _: OwnNetwork((), (named,)),
    )


def _plain(host: str) -> str:
    return host.strip("[]").removesuffix(".")


def _tunnel(host: str) -> str:
    return f"by_proxy(f'CONNECT {host}:{{tcp}} HTTP/1.1')"


PRELUDE = """
tcp, udp, model, abstract = {servers.tcp}, {servers.udp}, {servers.model}, {servers.abstract!r}
gateway = {servers.gateway}

def talk(family, address, kind=socket.SOCK_STREAM):
    try:
        with socket.socket(family, kind) as client:
            client.settimeout(5)
            client.connect(address)
            client.send(b"x")
            print(client.recv(100).decode())
    except OSError as error:
        print("refused:", error)

def by_proxy(first):
    try:
        with socket.create_connection(("127.0.0.1", 61128), 10) as way:
            way.sendall(first.encode() + b"\\r\\n\\r\\n")
            print(way.makefile("rb").read().decode())
    except OSError as error:
        print("refused:", error)

def ask(port, *lines):
    try:
        way = socket.create_connection(("127.0.0.1", port), 10)
    except ConnectionRefusedError:  # there is no proxy in between
        way = socket.create_connection(("127.0.0.1", gateway), 10)
    with way:
        way.sendall("".join(line + "\\r\\n" for line in (*lines, "")).encode())
        way.shutdown(socket.SHUT_WR)
        print(way.makefile("rb").read().decode())

"""

NETWORK_ROUTES = (
    _straight("loopback", "reach what listens on this machine's loopback", "talk(socket.AF_INET, ('127.0.0.1', tcp))"),
    _straight("loopback-else", "… by another address of it", "talk(socket.AF_INET, ('127.3.2.1', tcp))"),
    _straight("any-address", "… by the address that means all of its addresses", "talk(socket.AF_INET, ('0.0.0.0', tcp))"),
    _straight("mapped", "… by IPv6", "talk(socket.AF_INET6, ('::ffff:127.0.0.1', tcp))"),
    _straight("datagrams", "send datagrams to this machine", "talk(socket.AF_INET, ('127.0.0.1', udp), socket.SOCK_DGRAM)"),
    _straight("abstract-socket", "reach a socket that has no path", "talk(socket.AF_UNIX, chr(0) + abstract)"),
    _straight(
        "who-listens", "see who listens on this machine",
        "print(CANARY if f':{tcp:04X}' in open('/proc/net/tcp').read() else 'not there')",
    ),
    _by_name("proxy-name", "localhost", "by its name"),
    _by_name("proxy-name-with-dot", "localhost.", "by its name with a dot"),
    _by_name("proxy-short", "127.1", "by a short form of its address"),
    _by_name("proxy-number", "2130706433", "by its address as one number"),
    _by_name("proxy-hexadecimal", "0x7f000001", "by its address in hexadecimal digits"),
    _by_name("proxy-octal", "0177.0.0.1", "by its address in octal digits"),
    _by_name("proxy-any", "0.0.0.0", "by the address that means all of its addresses"),  # noqa: S104 -- what is tried
    _by_name("proxy-mapped", "[::ffff:127.0.0.1]", "by its address within one of IPv6"),
    _unnamed("proxy-port", "have the proxy connect to another port of a host that is named", _tunnel("127.0.0.1")),
    _unnamed("proxy-plain", "… by plain HTTP", "by_proxy(f'GET http://127.0.0.1:{tcp}/ HTTP/1.1')"),
    _unnamed(
        "proxy-account", "… with a host that is named as the account",
        "by_proxy(f'GET http://127.0.0.1:{model}@127.0.0.1:{tcp}/ HTTP/1.1')",
    ),
    _reflected("key-as-origin", "have the model's server send back the key that the proxy inserts, as the origin", "Origin"),
    _reflected("key-as-header", "… as the name of a header", "Access-Control-Request-Headers"),
    _other_site(
        "other-site", "ask an allowed server for another of its sites, by `Host`",
        "ask(61128, f'GET http://127.0.0.1:{gateway}/ HTTP/1.1', 'Host: other.example')",
    ),
    _other_site(
        "other-site-hidden", "… by a `Host` behind a bare end of line",
        "ask(61128, f'GET http://127.0.0.1:{gateway}/ HTTP/1.1', 'A: b\\nHost: other.example')",
    ),
    _other_site(
        "other-site-whole-address", "… by a whole address at the model's port",
        f"ask({FIRST_MODEL_PORT}, 'GET http://other.example/ HTTP/1.1')",
    ),
    _other_site(
        "other-site-at-model", "… by a `Host` behind a bare end of line at the model's port",
        f"ask({FIRST_MODEL_PORT}, 'GET / HTTP/1.1', 'A: b\\nHost: other.example')",
    ),
    _other_site(
        "other-site-second", "… by a second request behind a plain one",
        f"ask(61128, f'GET http://127.0.0.1:{{gateway}}/ HTTP/1.1', {_SECOND})",
    ),
    _other_site(
        "other-site-second-at-model", "… by a second request at the model's port",
        f"ask({FIRST_MODEL_PORT}, 'POST / HTTP/1.1', 'Content-Length: 0', {_SECOND})",
    ),
    _other_site(
        "other-site-two-lengths", "… by one that is hidden in a body with two lengths",
        f"ask({FIRST_MODEL_PORT}, 'POST / HTTP/1.1', 'Content-Length: 47', 'Transfer-Encoding: chunked', '', '0', {_SECOND})",
    ),
    _other_site(
        "other-site-chunks", "… by one behind the end of the chunks",
        f"ask({FIRST_MODEL_PORT}, 'POST / HTTP/1.1', 'Transfer-Encoding: chunked', '', '0', {_SECOND})",
    ),
    _other_site(
        "other-site-upgrade", "… by one behind an upgrade that the server does not make",
        f"ask({FIRST_MODEL_PORT}, 'GET / HTTP/1.1', 'Upgrade: websocket', {_SECOND})",
    ),
    _asked("asked-files", "use the worker's key for files of its account (claude)", "claude", "GET /v1/files"),
    _asked("asked-batches", "… for a batch, which no budget counts (claude)", "claude", "POST /v1/messages/batches"),
    _asked("asked-answers", "… for answers that others got (codex)", "codex", "GET /responses/resp_1"),
    _asked("asked-tuning", "… to train a model (codex)", "codex", "POST /fine_tuning/jobs"),
    _asked("asked-cache", "… to leave something for others (gemini)", "gemini", "POST /v1beta/cachedContents"),
    _asked("asked-admin", "… to make keys at a gateway (copilot)", "copilot", "POST /key/generate"),
    _asked("asked-deletes", "… to delete a model (opencode)", "opencode", "DELETE /models/m"),
    _beside(
        "beside-dots", "leave the base path of a gateway, by dots (claude)", "claude", _PLAIN_PATHS,
        "POST /v1/messages/../../../team-b HTTP/1.1",
    ),
    _beside(
        "beside-encoded", "… by encoded dots (gemini)", "gemini", _PLAIN_PATHS,
        "POST /v1beta/models/%2e%2e%2f%2e%2e/team-b:generateContent HTTP/1.1",
    ),
    _beside(
        "beside-empty", "… by an empty part (codex)", "codex", _PLAIN_PATHS, "POST //team-b/responses HTTP/1.1",
    ),
    _beside(
        "other-account", "send the work to another account of the model's host (claude)", "claude", _ONE_KEY,
        "POST /v1/messages HTTP/1.1", "x-api-key: sk-attacker",
    ),
    _beside(
        "other-account-bearer", "… (codex)", "codex", _ONE_KEY,
        "POST /responses HTTP/1.1", f"x-api-key: {_STANDS_IN}", "Authorization: Bearer sk-attacker",
    ),
    _beside(
        "other-account-query", "… by the query (gemini)", "gemini", _ONE_KEY,
        "POST /v1beta/models/g:generateContent?key=sk-attacker HTTP/1.1",
    ),
    _past_the_port("past-tunnel", "reach the model's host by a tunnel (claude)", "claude", _tunnel("127.0.0.1")),
    _past_the_port("past-plain", "… by plain HTTP (codex)", "codex", "by_proxy(f'GET http://127.0.0.1:{tcp}/ HTTP/1.1')"),
    _past_the_port("past-loopback", "… by its own port on loopback (opencode)", "opencode", "talk(socket.AF_INET, ('127.0.0.1', tcp))"),
)  # fmt: skip


NAME_ROUTES = (
    _resolved("name-of-private", "private.example", "a host of a private network"),
    _resolved("name-of-metadata", "metadata.example", "a cloud's metadata"),
)


@contextmanager
def servers_with_canary() -> Iterator[Servers]:
    """Listen on this machine: servers with the canary, and a model without it."""
    with ExitStack() as stack:
        tcp, model, gateway = (stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3))
        tcp_on_all = stack.enter_context(socket.socket())
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        tcp_on_all.bind(("127.3.2.1", tcp.getsockname()[1]))
        name = f"septet-canary-{os.getpid()}"
        abstract.bind(f"\0{name}")
        udp.bind(("127.0.0.1", 0))
        for each in (tcp_on_all, abstract):
            each.listen()
        for server, words in ((tcp, CANARY), (tcp_on_all, CANARY), (abstract, CANARY), (model, "a model")):
            stack.callback(_end, server, _serve(server, words))
        stack.callback(_end, gateway, _serve(gateway))
        threading.Thread(target=_answer_datagrams, args=(udp,), daemon=True).start()
        stack.callback(udp.sendto, b"end", udp.getsockname())
        yield Servers(_port_of(tcp), _port_of(udp), _port_of(model), _port_of(gateway), name)


def _port_of(server: socket.socket) -> int:
    port: int = server.getsockname()[1]
    return port


def _serve(server: socket.socket, words: str = "") -> threading.Thread:
    """Serve these words to every client; without words, be a gateway."""

    def serve() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client, suppress(OSError):
                client.settimeout(10)
                client.sendall((words or _answer_of_gateway(client)).encode())
                client.shutdown(socket.SHUT_WR)
                while client.recv(1000):
                    continue

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def _answer_of_gateway(client: socket.socket) -> str:
    """Read requests as careless servers do, with any line end, and return the canary if they ask for another site."""
    head = ""
    while more := client.recv(4096):
        head += more.decode()
    lines = head.replace("\r\n", "\n").split("\n")
    asks_elsewhere = "http://other.example" in lines[0] or "Host: other.example" in lines
    asks_elsewhere = asks_elsewhere or "/team-b" in lines[0] or "sk-attacker" in head
    return f"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{CANARY if asks_elsewhere else head}"


def _end(server: socket.socket, thread: threading.Thread) -> None:
    with suppress(OSError):
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


def _answer_datagrams(server: socket.socket) -> None:
    with suppress(OSError):
        while True:
            told, client = server.recvfrom(100)
            if told == b"end":
                return
            server.sendto(CANARY.encode(), client)


def network_attacks() -> tuple[tuple[str, str], ...]:
    return tuple((each.attack, each.protection) for each in (*NETWORK_ROUTES, *NAME_ROUTES))
