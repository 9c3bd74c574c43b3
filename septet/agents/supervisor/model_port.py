"""A port of the guest's that stands for its model API: here its key of no worth becomes the real one.

Each connection carries one request: its head is changed, its body is passed on as it is. Servers tell their
clients what they do not understand, such as an address or an origin: so a key is put in only where CLIs send one.
"""

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from septet.agents.supervisor.request_body import is_upgrade
from septet.agents.supervisor.request_head import RequestHead, authority, write_head

HTTPS_PORT, HTTP_PORT = 443, 80
BETWEEN_CLIENT_AND_PORT = frozenset({b"host", b"keep-alive", b"connection", b"upgrade", b"te", b"trailer"})
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
"""Not those that are answered with what was asked, such as `TRACE`."""
KEY_FIELDS = frozenset({b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key"})
"""In which CLIs send their keys."""
SCHEMES = frozenset({b"", b"bearer"})
"""What may stand before a key in a field."""


class ModelPort:
    """Where the model is, and which keys are put in for which."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        """Read it.

        Raises:
            KeyError: A field is missing.
            ValueError: The address is none.
        """
        address = urlsplit(str(fields["address"]))
        self.port = int(str(fields["port"]))
        """On the guest's loopback."""
        self.is_https = address.scheme == "https"
        self.name = (address.hostname or "").removesuffix(".")
        usual_port = HTTPS_PORT if self.is_https else HTTP_PORT
        self.host_port = address.port or usual_port
        self.authority = authority(self.name, self.host_port, usual_port)
        self.path = address.path.rstrip("/")
        keys, names = fields["keys"], fields.get("key_fields")
        self.keys = {str(one).encode(): str(key).encode() for one, key in keys} if isinstance(keys, list) else {}
        """By the key of no worth: the real one."""
        own_names = [str(each).lower().encode() for each in names] if isinstance(names, list) else []
        self.key_fields = KEY_FIELDS.union(own_names)
        """In which keys are put, by their names in small letters."""

    def change_head(self, request: RequestHead) -> bytes:
        """Return the head of a request as the model's host gets it, with its end.

        Raises:
            ValueError: It is none that a model is asked by: its target is a whole address, for example.
        """
        if request.method not in METHODS or not request.target.startswith(b"/"):
            raise ValueError("A model is asked by a path, with a usual method.")
        fields = [(name, self.with_key(name, value)) for name, value in request.without(BETWEEN_CLIENT_AND_PORT)]
        upgrade = ((b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"))
        connection = upgrade if is_upgrade(request) else ((b"Connection", b"close"),)
        return write_head(
            request.method,
            self.path.encode() + request.target,
            ((b"Host", self.authority), *fields, *connection),
        )

    def with_key(self, name: bytes, value: bytes) -> bytes:
        """Return the value of a field with the real key, where it is a key of no worth and nothing else."""
        scheme, space, one = value.rpartition(b" ")
        if name.lower() not in self.key_fields or one not in self.keys or scheme.lower() not in SCHEMES:
            return value
        return scheme + space + self.keys[one]


def read_model_ports(value: object) -> Sequence[ModelPort]:
    """Return those of an order; none where it says nothing of them."""
    return [ModelPort(each) for each in value] if isinstance(value, list) else []
