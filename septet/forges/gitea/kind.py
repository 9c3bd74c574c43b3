"""The entry of Gitea and Forgejo for `choose`."""

from typing import Final

from septet.forges.gitea.forge import GiteaForge, gitea_api
from septet.forges.gitea.webhook import GITEA_WEBHOOK
from septet.forges.kind import ForgeKind, web_address
from septet.git.engine.address import Address


def connect_gitea(address: Address, api_url: str | None, token: str | None) -> GiteaForge:
    """Return the forge of a repository."""
    return GiteaForge(address.project, gitea_api(api_url or f"{web_address(address)}/api/v1", token))


GITEA: Final = ForgeKind("gitea", "Gitea", nests=False, connect=connect_gitea, webhook=GITEA_WEBHOOK)
