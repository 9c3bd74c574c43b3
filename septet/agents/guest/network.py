"""A guest's network: a private network, whose only way out is a proxy, or the machine's network."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self
from urllib.parse import urlsplit

from septet.agents.guest.sandbox_parts import HOST_NAME, FixedProtection
from septet.errors import InvalidInputError

PROXY_PORT: Final = 61128
FIRST_MODEL_PORT: Final = 61129
"""The first port for models on the guest's own loopback, above the ports that the kernel assigns by itself."""
_PROXY: Final = f"http://127.0.0.1:{PROXY_PORT}"
_NAME: Final = re.compile(
    r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*|[0-9a-f:]*:[0-9a-f:.]*"
)
_ADDRESS: Final = re.compile(r"https?://[^\s\"'<>\\,;`]+", re.IGNORECASE)
_HTTPS_PORT: Final = 443
_USUAL_PORTS: Final = {"http": 80, "https": _HTTPS_PORT}
_MOST_PORTS: Final = 65536
_PROXY_VARIABLES: Final = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_REQUEST: Final = re.compile(r"(GET|HEAD|POST|PUT|PATCH|DELETE) (/[A-Za-z0-9_~:@.,=+$*-]+)+")
_SETTING: Final = "SEPTET_GUEST_HOSTS"
_REQUEST_REMEDY: Final = (
    "Separate requests by commas, each as `METHOD /path` below the model's address, such as "
    "`POST /v1/embeddings`; `*` stands for one part of a path."
)
_REMEDY: Final = (
    "Separate hosts by commas, each as `name:port`, such as `packages.example.com:443,files.example.com:443`."
)


@dataclass(frozen=True, slots=True, order=True)
class NamedHost:
    """A network host and port that a guest may reach."""

    name: str
    """The name in small letters; an IPv6 address without its brackets."""
    port: int

    @classmethod
    def parse(cls, text: str, setting: str = _SETTING) -> Self:
        """Return the network host in an entry of a setting; the default port is 443.

        Raises:
            InvalidInputError: The entry is no host.
        """
        name, colon, port = text.strip().lower().rpartition(":")
        if not colon or text.strip().endswith("]"):
            name, port = text.strip().lower(), str(_HTTPS_PORT)
        name = name.removeprefix("[").removesuffix("]").removesuffix(".")
        if not _NAME.fullmatch(name):
            raise InvalidInputError(f"{setting}: {text!r} names no host.", remedy=_REMEDY)
        if not port.isdecimal() or not 0 < int(port) < _MOST_PORTS:
            raise InvalidInputError(f"{setting}: {text!r} names no port.", remedy=_REMEDY)
        return cls(name, int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether the name is a loopback name of this machine."""
        return self.name in {"localhost", "::1"} or self.name.startswith("127.")

    def __str__(self) -> str:
        """Return the host as `name:port`, with brackets around an IPv6 address."""
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


def parse_hosts(texts: tuple[str, ...], setting: str = _SETTING) -> tuple[NamedHost, ...]:
    """Return the network hosts in the entries of a setting.

    Raises:
        InvalidInputError: An entry is no host.
    """
    return tuple(NamedHost.parse(text, setting) for text in texts if text.strip())


def hosts_in(texts: Iterable[str]) -> tuple[NamedHost, ...]:
    """Return the network hosts of all web addresses in texts, for example in the values of variables."""
    found: set[NamedHost] = set()
    for address in (match[0] for text in texts for match in _ADDRESS.finditer(text)):
        try:
            parts = urlsplit(address)
            name, port = (parts.hostname or "").removesuffix("."), parts.port or _USUAL_PORTS[parts.scheme.lower()]
        except ValueError:
            continue
        if _NAME.fullmatch(name):
            found.add(NamedHost(name, port))
    return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class ModelKey:
    """A model API whose real keys only the proxy has; a guest reaches it at a loopback port, with a dummy key."""

    port: int
    address: str
    keys: tuple[str, ...] = field(repr=False)
    """The real keys, for the proxy alone; a guest has `worthless_key(number)` in place of each key."""
    headers: tuple[str, ...] = ()
    """Further headers into which the proxy writes keys, in addition to the usual headers."""
    requests: tuple[str, ...] = ()
    """The requests that may reach the model, as `METHOD /path` below the address."""
    query_names: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Header fields that look like keys, and that the guest may send with these values."""

    @property
    def address_inside(self) -> str:
        """The model's address for the guest: a port of the guest's loopback."""
        return f"http://127.0.0.1:{self.port}"

    def order(self) -> dict[str, Any]:
        """Return the fields of this API for a supervisor's start order."""
        return {
            "port": self.port,
            "address": self.address,
            "keys": [[worthless_key(number), key] for number, key in enumerate(self.keys)],
            "key_fields": list(self.headers),
            "requests": list(self.requests),
            "query_names": list(self.query_names),
            "fields": [list(each) for each in self.fields],
        }


def worthless_key(number: int) -> str:
    """Return the dummy key that a guest has in place of `keys[number]`."""
    return f"sk-septet-stands-in-for-a-key-that-stays-outside-{number}"


@dataclass(frozen=True)
class OwnNetwork(FixedProtection):
    """A private network of the guest with only a loopback, on which the proxy listens."""

    fixed = ("--unshare-net",)
    hosts: tuple[NamedHost, ...] = ()
    """The hosts to which the proxy connects if their addresses are public."""
    own_hosts: tuple[NamedHost, ...] = ()
    """The hosts of model APIs that the worker's settings name; their addresses may be private."""
    proxies: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The worker's own proxies, by the names of variables in small letters. Only the guest's proxy gets their
    passwords."""
    models: tuple[ModelKey, ...] = ()
    """The model APIs for which the proxy writes the keys."""
    ca_file: str = ""
    """The file with the worker's own certificate authorities, for the model APIs."""

    def texts(self) -> Mapping[str, str]:
        """Return the contents of the files for name resolution, by path; they name only the guest itself."""
        return {
            "/etc/hosts": f"127.0.0.1 localhost {HOST_NAME}\n::1 ip6-localhost\n",
            "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
        }

    def order(self) -> dict[str, Any]:
        """Return the fields of this network for a supervisor's start order."""
        return {
            "port": PROXY_PORT,
            "hosts": [[each.name, each.port] for each in self.hosts],
            "own_hosts": [[each.name, each.port] for each in self.own_hosts],
            "forwards": [[each.name, each.port] for each in self.own_hosts if each.is_loopback],
            "proxies": dict(self.proxies),
            "models": [each.order() for each in self.models],
            "ca_file": self.ca_file,
        }


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """A worker's settings for the networks of guests."""

    hosts: tuple[NamedHost, ...] = ()
    is_open: bool = False
    """Whether guests have the machine's own network."""
    proxies: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The worker's own proxies, by the names of their variables in small letters."""
    model_requests: tuple[str, ...] = ()
    """Requests that guests may send to a model whose key stays outside, in addition to the CLIs' requests."""
    setup_hosts: tuple[NamedHost, ...] = ()

    def for_setup(self) -> "NetworkSettings":
        """Return these settings with the further network hosts that a repository's set-up may reach."""
        return replace(self, hosts=(*self.hosts, *self.setup_hosts))


def parse_way_out(
    hosts: tuple[str, ...],
    network: str,
    env: Mapping[str, str],
    requests: tuple[str, ...] = (),
    setup_hosts: tuple[str, ...] = (),
) -> NetworkSettings:
    """Return the settings for the networks of guests, from the worker's settings.

    `network` is `proxy` or `open`; `requests` are further requests that models may get, as `METHOD /path`.

    Raises:
        InvalidInputError: An entry is no host, or no request.
    """
    proxies = {name.lower(): value for name, value in env.items() if name.lower() in _PROXY_VARIABLES and value}
    for each in filter(None, requests):
        if not _REQUEST.fullmatch(each):
            raise InvalidInputError(f"SEPTET_MODEL_REQUESTS: {each!r} names no request.", remedy=_REQUEST_REMEDY)
    for_setup = parse_hosts(setup_hosts, "SEPTET_SETUP_HOSTS")
    return NetworkSettings(
        parse_hosts(hosts), network == "open", proxies, tuple(filter(None, requests)), for_setup
    )


def network_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return a program's environment for a private network, with the guest's proxy and no other proxy."""
    inside = {name: value for name, value in env.items() if name.lower() not in _PROXY_VARIABLES}
    for name in ("http_proxy", "https_proxy"):
        inside |= {name: _PROXY, name.upper(): _PROXY}
    own = "localhost,127.0.0.1,::1"
    return inside | {"no_proxy": own, "NO_PROXY": own, "NODE_USE_ENV_PROXY": "1"}
