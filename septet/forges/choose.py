"""Which forge a repository has; a host with none is refused before anything starts."""

from typing import Final, Literal

from septet.errors import InvalidInputError
from septet.forges.forge import Forge
from septet.forges.github import GitHubForge
from septet.forges.local import LocalForge
from septet.git.address import Address
from septet.settings import Settings

_GITHUB: Final = "github.com"
_OWNER_AND_NAME: Final = 2


def forge_name(address: Address, github_hosts: tuple[str, ...] = (_GITHUB,)) -> Literal["github", "local"]:
    """Return which forge the repository has.

    Args:
        address: The repository.
        github_hosts: Hosts that speak GitHub's API.

    Raises:
        InvalidInputError: Its host has no forge that is known, or the address is no repository there.
    """
    if address.path is not None:
        return "local"
    if address.host not in github_hosts:
        raise InvalidInputError(
            f"repository: the host {address.host} has no forge that is known.",
            remedy="Name it in SEPTET_GITHUB_HOSTS if it speaks GitHub's API, or give a path on this machine.",
        )
    if address.project.count("/") != _OWNER_AND_NAME - 1:
        example = f"https://{address.host}/owner/name"
        raise InvalidInputError(
            f"repository: {address.url} is not a GitHub repository.", remedy=f"Give {example}."
        )
    return "github"


def forge_for(address: Address, settings: Settings) -> Forge:
    """Return the repository's forge.

    Raises:
        InvalidInputError: As for `forge_name`.
    """
    name = forge_name(address, settings.github_hosts)
    if name == "local" and address.path is not None:
        return LocalForge(address.path, settings.git_env)
    token = settings.github_token.get_secret_value() if settings.github_token else None
    return GitHubForge(address.project, settings.github_api_url or _api_url(address.host), token)


def _api_url(host: str) -> str:
    return f"https://api.{_GITHUB}" if host == _GITHUB else f"https://{host}/api/v3"
