"""GitHub, as `choose` knows it."""

from typing import Final

from septet.forges.github.forge import GitHubForge
from septet.forges.kind import ForgeAccess, ForgeKind
from septet.git.address import Address

_PUBLIC: Final = "github.com"


def connect_github(address: Address, access: ForgeAccess) -> GitHubForge:
    """Return the forge of a repository."""
    follows = f"https://api.{_PUBLIC}" if address.host == _PUBLIC else f"https://{address.host}/api/v3"
    return GitHubForge(address.project, access.api_url or follows, access.token)


GITHUB: Final = ForgeKind("github", "GitHub", nests=False, connect=connect_github)
