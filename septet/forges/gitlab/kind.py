"""The entry of GitLab for `choose`."""

from typing import Final

from septet.forges.gitlab.forge import GitLabForge, gitlab_api
from septet.forges.gitlab.webhook import GITLAB_WEBHOOK
from septet.forges.kind import ForgeKind, web_address
from septet.git.engine.address import Address


def connect_gitlab(address: Address, api_url: str | None, token: str | None) -> GitLabForge:
    """Return the forge of a project."""
    return GitLabForge(address.project, gitlab_api(api_url or f"{web_address(address)}/api/v4", token))


GITLAB: Final = ForgeKind(
    "gitlab",
    "GitLab",
    nests=True,
    connect=connect_gitlab,
    webhook=GITLAB_WEBHOOK,
    login=("glab", "config", "get", "token", "--host"),
)
