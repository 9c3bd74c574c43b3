"""A port of the guest's that stands for its model API: here its key of no worth becomes the real one.

Each connection carries one request: its head is changed, the rest is passed on as it is.
"""

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

HTTPS_PORT, HTTP_PORT = 443, 80
BETWEEN_CLIENT_AND_PORT = (b"host:", b"proxy-", b"keep-alive:", b"connection:")


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
        self.host_port = address.port or (HTTPS_PORT if self.is_https else HTTP_PORT)
        self.path = address.path.rstrip("/")
        keys = fields["keys"]
        self.keys = [(str(one), str(key)) for one, key in keys] if isinstance(keys, list) else []
        """A key of no worth, and the real one."""

    def change_head(self, head: bytes) -> bytes:
        """Return the head of a request as the model's host gets it, without its end."""
        line, *fields = head.split(b"\r\n")
        method, _, target = line.partition(b" ")
        upgrades = any(field.lower().startswith(b"upgrade:") for field in fields)
        rest = [field for field in fields if not field.lower().startswith(BETWEEN_CLIENT_AND_PORT)]
        usual = self.host_port == (HTTPS_PORT if self.is_https else HTTP_PORT)
        host = self.name if usual else f"{self.name}:{self.host_port}"
        changed = b"\r\n".join(
            (
                method + b" " + self.path.encode() + target,
                b"Host: " + host.encode(),
                *rest,
                b"Connection: Upgrade" if upgrades else b"Connection: close",
            )
        )
        for worthless, key in self.keys:
            changed = changed.replace(worthless.encode(), key.encode())
        return changed


def read_model_ports(value: object) -> Sequence[ModelPort]:
    """Return those of an order; none where it says nothing of them."""
    return [ModelPort(each) for each in value] if isinstance(value, list) else []
