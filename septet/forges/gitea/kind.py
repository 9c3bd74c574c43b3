"""Gitea and Forgejo, as `choose` knows them."""

from typing import Final

from septet.forges.gitea.client import REMEDIES
from septet.forges.gitea.forge import GiteaForge
from septet.forges.http_client import ForgeApi
from septet.forges.kind import ForgeAccess, ForgeKind, web_address
from septet.git.engine.address import Address


def connect_gitea(address: Address, access: ForgeAccess) -> GiteaForge:
    """Return the forge of a repository."""
    url = access.api_url or f"{web_address(address)}/api/v1"
    return GiteaForge(address.project, ForgeApi("Gitea", url.rstrip("/"), access.token, REMEDIES))


GITEA: Final = ForgeKind("gitea", "Gitea", nests=False, connect=connect_gitea)
