"""What a package of a forge says of itself, so that one line in `choose` adds it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from septet.forges.forge import Forge
from septet.git.engine.address import Address


@dataclass(frozen=True, slots=True)
class ForgeAccess:
    """What a worker's settings say of one kind of forge."""

    hosts: tuple[str, ...]
    """Those that speak its API."""
    api_url: str | None = None
    """Where the API is, when that does not follow from the host."""
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ForgeKind:
    """A kind of forge."""

    name: str
    """As records and settings have it: `SEPTET_<NAME>_TOKEN`, `_HOSTS` and `_API_URL`."""
    title: str
    """As people call it."""
    nests: bool
    """Whether a repository may lie in a group of a group."""
    connect: Callable[[Address, ForgeAccess], Forge]
    login: tuple[str, ...] = ()
    """The command of the forge's own program that prints its token for the host that follows; empty: none."""


def web_address(address: Address) -> str:
    """Return where a repository's host answers over HTTP: as its address says, or else over https."""
    scheme = "http" if address.url.startswith("http://") else "https"
    return f"{scheme}://{address.host}"
