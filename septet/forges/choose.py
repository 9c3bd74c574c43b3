"""Which forge a repository has; a host with none is refused before anything starts."""

from typing import Final

from septet.errors import InvalidInputError
from septet.forges.forge import Forge
from septet.forges.gitea.kind import GITEA
from septet.forges.github.kind import GITHUB
from septet.forges.gitlab.kind import GITLAB
from septet.forges.kind import ForgeAccess, ForgeKind
from septet.forges.local import LocalForge
from septet.git.address import Address
from septet.settings import Settings

KINDS: Final[tuple[ForgeKind, ...]] = (GITHUB, GITLAB, GITEA)
"""All but `local`; another forge is another package, and a name here."""


def forge_name(address: Address, settings: Settings) -> str:
    """Return which forge the repository has.

    Raises:
        InvalidInputError: Its host has no forge that is known, or the address is no repository there.
    """
    return "local" if address.path is not None else _kind_of(address, settings).name


def forge_for(address: Address, settings: Settings) -> Forge:
    """Return the repository's forge.

    Raises:
        InvalidInputError: As for `forge_name`.
    """
    if address.path is not None:
        return LocalForge(address.path, settings.git_env)
    kind = _kind_of(address, settings)
    return kind.connect(address, _access(kind, settings))


def token_for(address: Address, settings: Settings) -> str | None:
    """Return the worker's key for an origin; a key is for the hosts of its own forge, and for no other."""
    if address.path is not None:
        return None
    accesses = (_access(kind, settings) for kind in KINDS)
    return next((access.token for access in accesses if address.host in access.hosts), None)


def _kind_of(address: Address, settings: Settings) -> ForgeKind:
    for kind in KINDS:
        if address.host in _access(kind, settings).hosts:
            break
    else:
        names = ", ".join(f"SEPTET_{each.name.upper()}_HOSTS" for each in KINDS)
        raise InvalidInputError(
            f"repository: the host {address.host} has no forge that is known.",
            remedy=f"Name it in {names}, by the API that it speaks, or give a path on this machine.",
        )
    folders = address.project.count("/") + 1
    if folders < 2 or (folders > 2 and not kind.nests):  # noqa: PLR2004 -- an owner and a name
        raise InvalidInputError(
            f"repository: {address.url} is not a {kind.title} repository.",
            remedy=f"Give https://{address.host}/owner/name.",
        )
    return kind


def _access(kind: ForgeKind, settings: Settings) -> ForgeAccess:
    """Return what the settings that have the forge's name say of it."""
    hosts, api_url, token = (getattr(settings, f"{kind.name}_{what}") for what in ("hosts", "api_url", "token"))
    return ForgeAccess(hosts, api_url, token.get_secret_value() if token is not None else None)
