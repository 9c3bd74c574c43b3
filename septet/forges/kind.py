"""What a package of a forge says of itself, so that one line in `choose` adds it."""

from collections.abc import Callable
from dataclasses import dataclass

from septet.forges.events.webhooks import WebhookKind
from septet.forges.forge import Forge
from septet.git.engine.address import Address


@dataclass(frozen=True, slots=True)
class ForgeKind:
    """A kind of forge."""

    name: str
    """As records and settings have it: `SEPTET_<NAME>_TOKEN`, `_HOSTS` and `_API_URL`."""
    title: str
    """As people call it."""
    nests: bool
    """Whether a repository may lie in a group of a group."""
    connect: Callable[[Address, str | None, str | None], Forge]
    """Returns a repository's forge, by the API's address where it does not follow from the host, and the key."""
    webhook: WebhookKind
    """How it sends its events to `POST /webhooks/<name>`."""
    login: tuple[str, ...] = ()
    """The command of the forge's own program that prints its token for the host that follows; empty: none."""


def web_address(address: Address) -> str:
    """Return where a repository's host answers over HTTP: as its address says, or else over https."""
    scheme = "http" if address.url.startswith("http://") else "https"
    return f"{scheme}://{address.host}"
