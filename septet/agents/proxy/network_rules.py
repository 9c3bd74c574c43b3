"""Check what a guest may reach: hosts by name and port, and only at public addresses.

A host that the worker's settings name for a model may have any address. The proxy resolves a name once, checks
each address, and connects to a checked address. So a later change of the name's address opens nothing.

If the worker uses a proxy, that proxy resolves the name again. A name that has a private address here is refused,
unless the settings name the host. A name that this machine cannot resolve is passed to that proxy.
"""

import ipaddress
import socket
import ssl
import threading
from binascii import b2a_base64
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from urllib.parse import SplitResult, unquote, urlsplit

from septet.agents.proxy.guest_sockets import LOOPBACK, LOOPBACK_6
from septet.agents.proxy.model_port import ModelPort, pairs_in

LONGEST_NAME = 253
CONNECT_SECONDS = 20.0
RESOLVE_SECONDS = 3.0
"""The seconds to wait for a name that a proxy resolves too; a resolver may never answer for an unknown name."""
NETWORK_OF_NAT64 = ipaddress.ip_network("64:ff9b::/96")
LOCAL_NETWORK_OF_NAT64 = ipaddress.ip_network("64:ff9b:1::/48")
"""The network of RFC 8215 for use within an organization; some releases of Python take the network for public."""
PORT_LIMIT = 65536
HTTP_PORT = 80
HEAD_BYTES = 1 << 14


class NetworkRefusalError(Exception):
    """The error of a connection that the rules do not permit, with the reason."""


def resolve(name: str, port: int) -> list[str]:
    """Return the addresses of a name, at least one; raise `OSError` for an unknown name."""
    found = socket.getaddrinfo(name.encode(), port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


class Network:
    """The rules for a guest's connections, from a worker's order to the supervisor."""

    def __init__(
        self, fields: Mapping[str, object], resolver: Callable[[str, int], Sequence[str]] = resolve
    ) -> None:
        """Read the rules from a worker's order to the supervisor; a missing list permits nothing.

        `resolver` returns the addresses of a name at a port, or raises `OSError`.

        Raises:
            ValueError: A field is not valid.
            KeyError: The field `port`, or a field of a model, is missing.
            TypeError: A field has another type.
        """
        self.port = int(str(fields["port"]))
        """The proxy's port on the guest's own loopback."""
        self.hosts = {(name, int(port)) for name, port in pairs_in(fields.get("hosts"))}
        """The network hosts that the guest may reach if these hosts are on the internet."""
        self.own_hosts = {(name, int(port)) for name, port in pairs_in(fields.get("own_hosts"))}
        """The network hosts of model APIs that the worker's settings name; they may be on any network."""
        models = fields.get("models")
        ports = [ModelPort(each) for each in models] if isinstance(models, list) else []
        self.models = {each.port: each for each in ports}
        """The model APIs by port on the guest's loopback."""
        self.with_key = {(each.name, each.host_port) for each in self.models.values()}
        """The network hosts of models whose keys stay outside the sandbox: only model ports reach these hosts."""
        forwards = [(name, int(port)) for name, port in pairs_in(fields.get("forwards"))]
        own_names = [each for each in forwards if each not in self.with_key]
        self.forwards = {(LOOPBACK_6 if name == LOOPBACK_6 else LOOPBACK, port): name for name, port in own_names}
        """For each forwarded address and port of the guest's loopback: the loopback name to which the proxy
        connects on this machine."""
        self.ca_file = str(fields.get("ca_file") or "")
        """The file with the worker's own certificate authorities, which are used in addition to the machine's."""
        self.tls: ssl.SSLContext | None = None
        proxies = fields.get("proxies")
        self.proxies = dict(proxies) if isinstance(proxies, dict) else {}
        """The worker's own proxies, by the names of their variables in small letters."""
        self.resolver = resolver
        self.unanswered: set[str] = set()
        """The names for which the resolver did not answer in time: `look_up` does not resolve these names
        again."""

    @property
    def places(self) -> list[tuple[str, int]]:
        """The addresses and ports in the guest's network at which the proxy listens; `self.port` comes first."""
        own = [(LOOPBACK, port) for port in (self.port, *self.models)]
        return list(dict.fromkeys((*own, *self.forwards)))

    def prepare_tls(self) -> None:
        """Load the machine's certificate authorities, and the worker's own if their file can be read."""
        if not any(each.is_https for each in self.models.values()):
            return
        self.tls = ssl.create_default_context()
        if self.ca_file:
            with suppress(OSError):
                self.tls.load_verify_locations(self.ca_file)

    def connect(self, name: str, port: int, *, with_key: bool = False) -> socket.socket:
        """Return a connection to a permitted host; a host in `self.with_key` also needs the argument `with_key`.

        Raises:
            NetworkRefusalError: The host is not permitted, or resolves to no permitted address.
            OSError: The host does not answer.
        """
        if (name, port) in self.with_key and not with_key:
            raise NetworkRefusalError(
                "its key stays outside of the sandbox, and only requests to the model go there"
            )
        is_own = (name, port) in self.own_hosts
        if not is_own and (name, port) not in self.hosts:
            raise NetworkRefusalError("not in the list of hosts")
        upstream = upstream_for(self.proxies, name, port)
        if upstream is not None:
            if not is_own and not all(map(is_public, self.look_up(name, port))):
                raise NetworkRefusalError("it resolves to an address that is not public")
            return connect_by(upstream, name, port)
        addresses = self.resolver(name, port)
        open_ones = addresses if is_own else [each for each in addresses if is_public(each)]
        if not open_ones:
            raise NetworkRefusalError("it resolves to no public address")
        return connect_to_one(open_ones, port)

    def look_up(self, name: str, port: int) -> Sequence[str]:
        """Return the addresses of a name; empty for a name that this machine cannot resolve in time."""
        if ":" in name or name.rpartition(".")[2][:1].isdigit():  # an address, in any form
            return [name]
        if name in self.unanswered:
            return []
        found: list[str] = []

        def resolve_in_time() -> None:
            with suppress(OSError):
                found.extend(self.resolver(name, port))

        resolving = threading.Thread(target=resolve_in_time, daemon=True)
        resolving.start()
        resolving.join(RESOLVE_SECONDS)
        if resolving.is_alive():
            self.unanswered.add(name)
        return list(found)


def host_name(text: str) -> str:
    """Return a host's name in small letters, without a dot at the end and without brackets.

    Raises:
        NetworkRefusalError: The text is no name.
    """
    name = text.strip().lower().removeprefix("[").removesuffix("]").removesuffix(".")
    if not name or len(name) > LONGEST_NAME or not name.isascii() or any(not "!" <= sign <= "~" for sign in name):
        raise NetworkRefusalError("its name is not valid")
    return name


def split_host(text: str, usual_port: int) -> tuple[str, int]:
    """Return the name and the port of `name:port`; `usual_port` replaces a missing port.

    Raises:
        NetworkRefusalError: The name or the port is not valid.
    """
    name, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        name, port = text, str(usual_port)
    if not port.isdecimal() or not 0 < int(port) < PORT_LIMIT:
        raise NetworkRefusalError("its port is not valid")
    return host_name(name), int(port)


def is_public(text: str) -> bool:
    """Return whether an address is on the public internet and does not belong to this machine."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:  # a link-local address with its device
        return False
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo and address.teredo[1])
        if address in NETWORK_OF_NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner:
            return is_public(str(inner)) and address.ipv4_mapped is None
        if address.is_site_local or address in LOCAL_NETWORK_OF_NAT64:
            return False
    reserved = address.is_multicast or address.is_reserved or address.is_unspecified
    return address.is_global and not reserved and not is_own(text)


def is_own(address: str) -> bool:
    """Return whether an address belongs to this machine."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as trial:
        try:
            trial.connect((address, 9))
        except OSError:
            return False
        return bool(trial.getsockname()[0] == address)


def upstream_for(proxies: Mapping[str, object], name: str, port: int) -> SplitResult | None:
    """Return the worker's own proxy for connections to a host; `None` for a direct connection."""
    own = proxies.get("http_proxy" if port == HTTP_PORT else "https_proxy")
    address = str(own or proxies.get("all_proxy") or "")
    if not address or name in {"localhost", "::1"} or name.startswith("127."):
        return None
    for entry in str(proxies.get("no_proxy") or "").lower().split(","):
        exempt = entry.strip().removeprefix("*").removeprefix(".")
        if entry.strip() == "*" or (exempt and (name == exempt or name.endswith(f".{exempt}"))):
            return None
    parts = urlsplit(address if "://" in address else f"http://{address}")
    return parts if parts.scheme == "http" and parts.hostname else None


def connect_by(upstream: SplitResult, name: str, port: int) -> socket.socket:
    """Return a connection to a host through the worker's own proxy, which resolves the name."""
    way = connect_to_one(resolve(upstream.hostname or "", upstream.port or HTTP_PORT), upstream.port or HTTP_PORT)
    try:
        target = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        if upstream.username is not None:
            account = f"{unquote(upstream.username)}:{unquote(upstream.password or '')}"
            lines.append(f"Proxy-Authorization: Basic {b2a_base64(account.encode(), newline=False).decode()}")
        way.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode())
        await_tunnel(way)
    except BaseException:
        way.close()
        raise
    return way


def await_tunnel(way: socket.socket) -> None:
    """Read a proxy's answer to `CONNECT`; raise `OSError` unless the proxy has opened the tunnel."""
    told = b""
    while not told.endswith(b"\r\n\r\n") and len(told) < HEAD_BYTES:
        sign = way.recv(1)
        if not sign:
            break
        told += sign
    if told.split(b" ")[1:2] != [b"200"]:
        words = told.splitlines()[0][:100].decode("latin-1") if told else "nothing"
        raise OSError(0, f"the worker's proxy says {words!r}")


def connect_to_one(addresses: Sequence[str], port: int) -> socket.socket:
    """Return a connection to the first of these addresses that answers; raise `OSError` if none answers."""
    failure = OSError(0, "no address")
    for address in addresses:
        connection = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        connection.settimeout(CONNECT_SECONDS)
        try:
            connection.connect((address, port))
        except OSError as error:
            connection.close()
            failure = error
            continue
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection
    raise failure
