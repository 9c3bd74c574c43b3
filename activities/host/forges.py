"""The forges of repositories, and a worker's keys for them."""

from dataclasses import dataclass
from pathlib import Path

from septet.forges.choose import forge_for, token_for
from septet.forges.forge import Forge
from septet.git.engine.address import Address, parse_address
from septet.settings import Settings


@dataclass(frozen=True, slots=True)
class Forges:
    """The forges that a host's settings know."""

    settings: Settings

    def of(self, repository: str) -> tuple[Address, Forge]:
        """Return a repository's address, and the forge of its issues and pull requests.

        Raises:
            InvalidInputError: `repository` is no address, or its host has no forge.
        """
        address = parse_address(repository, home=Path.home())
        return address, forge_for(address, self.settings)

    def token(self, address: Address) -> str | None:
        """Return the worker's key for an https origin on a forge that is known; no agent ever sees it."""
        return token_for(address, self.settings)

    def token_for(self, repository: str) -> str | None:
        """Return the worker's key for a repository."""
        return self.token(parse_address(repository, home=Path.home()))
