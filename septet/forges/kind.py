"""The description of a forge's package, so that one line in `choose` adds the forge."""

from collections.abc import Callable
from dataclasses import dataclass

from septet.forges.events.webhooks import WebhookKind
from septet.forges.forge import Forge
from septet.git.engine.address import Address


@dataclass(frozen=True, slots=True)
class ForgeKind:
    """A kind of forge."""

    name: str
    """The name in records and settings: `SEPTET_<NAME>_TOKEN`, `_HOSTS` and `_API_URL`."""
    title: str
    """The name for people."""
    nests: bool
    """Whether a repository may be in a group of a group."""
    connect: Callable[[Address, str | None, str | None], Forge]
    """Takes a repository's address, the API's address (`None`: from the host) and the key; returns the forge."""
    webhook: WebhookKind
    """The form of the forge's events at `POST /webhooks/<name>`."""
    login: tuple[str, ...] = ()
    """The forge's own command that prints a token for the appended host; empty for a forge without a command."""


def web_address(address: Address) -> str:
    """Return the web address of a repository's host: http if the repository's address is http, or else https."""
    scheme = "http" if address.url.startswith("http://") else "https"
    return f"{scheme}://{address.host}"
