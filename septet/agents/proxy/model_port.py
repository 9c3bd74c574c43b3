"""A guest's port for its model API, which replaces the guest's dummy key by the real key.

Each connection carries one request. The port changes the head of the request, and passes the body on unchanged. It
passes only model requests, by method and path, and no request with another key. The key is inserted only into
fields in which CLIs send keys, because a server may repeat any other field in its answer to the guest.
"""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from septet.agents.proxy.request import RequestHead, authority, is_upgrade, write_head

HTTPS_PORT, HTTP_PORT = 443, 80
NOT_PASSED_ON = frozenset(
    {
        b"host", b"keep-alive", b"connection", b"upgrade", b"te", b"trailer", b"expect", b"cookie",
        b"accept-encoding", b"sec-websocket-extensions", b"sec-websocket-protocol",
    }
)  # fmt: skip
"""The fields that are not passed on: fields between client and port; cookies and protocols of web sockets, which
may be keys; and fields that request compression, because the port reads the usage in the answer."""
KEY_FIELDS = frozenset({b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key"})
"""The fields in which CLIs send their keys."""
SCHEMES = frozenset({b"", b"bearer"})
"""The words that may precede a key in a field."""
KEY_NAME = re.compile(
    rb"(?:.*[_-])?(?:api)?(?:key|token|auth|authorization|secret|password|credentials?)s?(?:[_-]id)?"
)
"""The pattern of the names of fields in which services take keys."""
NO_KEY = frozenset({b"sec-websocket-key"})
PATH = re.compile(r"/|(?:/(?!\.{1,2}(?:/|$))(?:[A-Za-z0-9_~:@.,=+$-]|%3[Aa]|%40)+)+")
"""The pattern of paths that all servers read alike: no empty or dotted part, no encoded character but `:` and
`@`."""
QUERY_NAME = re.compile(r"[A-Za-z0-9_.-]+")
OPENS = "SEPTET_MODEL_REQUESTS"


class RequestRefusalError(ValueError):
    """The error of a request that is no model request, with the reason."""


class ModelPort:
    """A model's address, the requests that may reach the model, and the real keys for the guest's dummy keys."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        """Read the port's fields from an order to a supervisor; without `requests` no request passes.

        Raises:
            KeyError: A field is missing.
            ValueError: The address is invalid.
        """
        address = urlsplit(str(fields["address"]))
        self.port = int(str(fields["port"]))
        """The port on the guest's loopback."""
        self.is_https = address.scheme == "https"
        self.name = (address.hostname or "").removesuffix(".")
        usual_port = HTTPS_PORT if self.is_https else HTTP_PORT
        self.host_port = address.port or usual_port
        self.authority = authority(self.name, self.host_port, usual_port)
        self.path = address.path.rstrip("/")
        self.keys = {one.encode(): key.encode() for one, key in pairs_in(fields.get("keys"))}
        """The real keys, by the dummy keys that the guest has."""
        self.key_fields = KEY_FIELDS.union(each.lower().encode() for each in texts_in(fields.get("key_fields")))
        """The fields into which keys are inserted, by their names in small letters."""
        self.requests = [read_rule(each) for each in texts_in(fields.get("requests"))]
        """The requests that may reach the model: methods, and patterns of paths below the address."""
        self.query_names = frozenset(texts_in(fields.get("query_names")))
        own_fields = pairs_in(fields.get("fields"))
        self.own_fields = {(name.lower().encode(), value.encode()) for name, value in own_fields}
        """Fields that look like keys, with the values of the worker's settings, which the guest knows."""

    def change_head(self, request: RequestHead) -> bytes:
        """Return the head of a request as the model's server receives it, with the empty line at its end.

        Raises:
            RequestRefusalError: The request is no model request, or has another key.
        """
        self.check_target(request)
        fields = [(name, self.with_key(name, value)) for name, value in request.without(NOT_PASSED_ON)]
        upgrade = ((b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"))
        connection = upgrade if is_upgrade(request) else ((b"Connection", b"close"),)
        return write_head(
            request.method,
            self.path.encode() + request.target,
            ((b"Host", self.authority), *fields, (b"Accept-Encoding", b"identity"), *connection),
        )

    def check_target(self, request: RequestHead) -> None:
        """Raise `RequestRefusalError` unless method, path and query are those of a permitted model request."""
        path, _, query = request.target.decode("latin-1").partition("?")
        if not PATH.fullmatch(path):
            raise RequestRefusalError("a model is asked by a plain path")
        if not any(method == request.method and rule.fullmatch(path) for method, rule in self.requests):
            raise RequestRefusalError(f"no model is asked by this; {OPENS} of the worker names what else is")
        for name in (part.partition("=")[0] for part in query.split("&") if part):
            if name not in self.query_names:
                shown = name if QUERY_NAME.fullmatch(name) else "something"
                raise RequestRefusalError(f"no model is asked with {shown} in the query")

    def with_key(self, name: bytes, value: bytes) -> bytes:
        """Return a field's value with the real key in place of the dummy key; refuse any other key."""
        lowered = name.lower()
        if lowered in self.key_fields:
            scheme, space, one = value.rpartition(b" ")
            if one in self.keys and scheme.lower() in SCHEMES:
                return scheme + space + self.keys[one]
        elif lowered in NO_KEY or not KEY_NAME.fullmatch(lowered):
            return value
        if (lowered, value) not in self.own_fields:
            shown = lowered.decode("ascii")
            raise RequestRefusalError(f"its {shown} is not the key that stands in for the worker's")
        return value


def read_rule(text: str) -> tuple[str, re.Pattern[str]]:
    """Return the method and the path's pattern from a rule `METHOD /path`; `*` matches one part of a path."""
    method, _, path = text.partition(" ")
    return method, re.compile("[^/]+".join(map(re.escape, path.split("*"))))


def texts_in(value: object) -> list[str]:
    """Return a field of an order to a supervisor as a list of texts; an empty list if the field is missing."""
    return [str(each) for each in value] if isinstance(value, list) else []


def pairs_in(value: object) -> list[tuple[str, str]]:
    """Return a field of an order to a supervisor as pairs of texts; an empty list if the field is missing."""
    return [(str(one), str(other)) for one, other in value] if isinstance(value, list) else []
