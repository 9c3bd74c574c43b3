"""GitLab, as `choose` knows it."""

from typing import Final

from septet.forges.gitlab.client import REMEDIES
from septet.forges.gitlab.forge import GitLabForge
from septet.forges.http_client import ForgeApi
from septet.forges.kind import ForgeAccess, ForgeKind, web_address
from septet.git.engine.address import Address


def connect_gitlab(address: Address, access: ForgeAccess) -> GitLabForge:
    """Return the forge of a project."""
    url = access.api_url or f"{web_address(address)}/api/v4"
    return GitLabForge(address.project, ForgeApi("GitLab", url.rstrip("/"), access.token, REMEDIES))


GITLAB: Final = ForgeKind(
    "gitlab", "GitLab", nests=True, connect=connect_gitlab, login=("glab", "config", "get", "token", "--host")
)
