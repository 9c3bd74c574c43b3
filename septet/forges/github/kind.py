"""The entry of GitHub for `choose`."""

from typing import Final

from septet.forges.github.forge import GitHubForge, github_api
from septet.forges.github.webhook import GITHUB_WEBHOOK
from septet.forges.kind import ForgeKind
from septet.git.engine.address import Address

_PUBLIC: Final = "github.com"


def connect_github(address: Address, api_url: str | None, token: str | None) -> GitHubForge:
    """Return the forge of a repository."""
    return GitHubForge(address.project, github_api(github_api_url(address, api_url), token))


def github_api_url(address: Address, api_url: str | None) -> str:
    """Return the API's address for a repository: from the settings, or else from the host."""
    follows = f"https://api.{_PUBLIC}" if address.host == _PUBLIC else f"https://{address.host}/api/v3"
    return api_url or follows


GITHUB: Final = ForgeKind(
    "github",
    "GitHub",
    nests=False,
    connect=connect_github,
    webhook=GITHUB_WEBHOOK,
    login=("gh", "auth", "token", "--hostname"),
)
