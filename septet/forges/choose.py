"""Choose the forge and the key for a repository, and refuse an address without a known forge."""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import SecretStr

from septet.errors import ForgeError, InvalidInputError
from septet.forges.forge import Forge
from septet.forges.github.app import INSTALLATIONS, GitHubApp
from septet.forges.kinds import GITHUB, KINDS, ForgeKind, github_api_url
from septet.forges.local.forge import LocalForge
from septet.git.engine.address import Address
from septet.settings import Settings
from septet.system.masking import hide_of
from septet.system.processes import run

_KEPT_SECONDS: Final = 60.0
"""How many seconds a token from a program is used: a login may change, but the program is slow."""
_tokens: Final[dict[tuple[tuple[str, ...], str], tuple[float, str]]] = {}
"""The last tokens of programs, each with its time, by program and host name."""
_lock: Final = threading.Lock()


def _login_token(argv: tuple[str, ...], host: str, env: Mapping[str, str]) -> str:
    """Run the program `argv` with `host` as its last argument, and return the token that it prints."""
    with _lock:
        known = _tokens.get((argv, host))
        if known is None or time.monotonic() - known[0] >= _KEPT_SECONDS:
            known = _tokens[argv, host] = (time.monotonic(), _ask([*argv, host], host, env))
        return known[1]


def _ask(argv: Sequence[str], host: str, env: Mapping[str, str]) -> str:
    try:
        done = run(argv, env=env, timeout_seconds=20.0)
    except OSError as error:
        message = f"`{argv[0]}` could not be started: {error.strerror}."
        remedy = f"Install {argv[0]}, or start the worker (`septet up`) again without it in SEPTET_FORGE_LOGINS."
        raise ForgeError(message, remedy=remedy) from error
    token = done.stdout.decode("utf-8", "replace").strip()
    if done.exit_code != 0 or done.timed_out or len(token.split()) != 1:
        remedy = f"Run `{argv[0]} auth login --hostname {host}` as the worker's user, or set the forge's token."
        raise ForgeError(f"`{argv[0]}` has no login for {host}.", remedy=remedy)
    hide_of(f"{argv[0]}, {host}", [token])
    return token


_HOSTS_NAMES: Final = ", ".join(f"SEPTET_{kind.name.upper()}_HOSTS" for kind in KINDS)
KEY_WAYS: Final = "GITHUB_TOKEN (or GITLAB_TOKEN, GITEA_TOKEN), a GitHub App, or SEPTET_FORGE_LOGINS"
"""How people can give a worker a key."""


def forge_name(address: Address, settings: Settings) -> str:
    """Return the name of the forge at a repository's address.

    Raises:
        InvalidInputError: The host name is no known forge's, or the address is no repository on the forge.
    """
    return "local" if address.path is not None else _kind_of(address, settings).name


def forge_for(address: Address, settings: Settings) -> Forge:
    """Return the forge of a repository; raises the same errors as `forge_name`."""
    if address.path is not None:
        return LocalForge(address.path, settings.git_env)
    kind = _kind_of(address, settings)
    api_url = getattr(settings, f"{kind.name}_api_url")
    return kind.connect(address, api_url, _token(kind, address, settings))


def token_for(address: Address, settings: Settings) -> str | None:
    """Return the worker's key for a repository's address; `None` without a key for its forge.

    The key is the first of: the token in the settings, the App's token, the token of a named login.

    Raises:
        ForgeError: The App or the login has no key.
        ForgeUnavailableError: GitHub did not answer the request for a token.
    """
    if address.path is not None:
        return None
    kind = next((kind for kind in KINDS if address.host in _hosts(kind, settings)), None)
    return _token(kind, address, settings) if kind is not None else None


def hosts_with_key(settings: Settings) -> tuple[str, ...]:
    """Return the host names for which the settings name a token, an App or a login; this sends no request."""
    hosts: list[str] = []
    for kind in KINDS:
        is_app = kind is GITHUB and settings.github_app_id is not None
        is_login = bool(kind.login) and kind.login[0] in settings.forge_logins
        if getattr(settings, f"{kind.name}_token") is not None or is_app or is_login:
            hosts += _hosts(kind, settings)
    return tuple(hosts)


def no_key_for(host: str) -> InvalidInputError:
    """Return the error for a forge without a key, to which the worker could not push finished work."""
    usual = {name for kind in KINDS for name in Settings.model_fields[f"{kind.name}_hosts"].default}
    naming = "" if host in usual else f", {_naming(host)}"
    return InvalidInputError(
        f"repository: the worker has no key for {host}, so it could not push there or open a pull request.",
        remedy=f"Set {KEY_WAYS} where the worker (`septet up`) runs{naming}, and start the worker again.",
    )


def _naming(host: str) -> str:
    """Return the remedy: add the host name to the setting that lists the hosts of its kind of forge."""
    return f"add {host} to one of {_HOSTS_NAMES}, by its API, and keep the hosts that you use"


def refuse_without_key(address: Address, settings: Settings) -> None:
    """Raise if the settings name no key for a repository's forge.

    Raises:
        InvalidInputError: The settings name no key.
    """
    if address.path is None and address.host not in hosts_with_key(settings):
        raise no_key_for(address.host)


def fork_for(address: Address, settings: Settings) -> str:
    """Return the fork that the settings name for a repository, such as `me/r`; empty for none."""
    return settings.forks.get(f"{address.host}/{address.project}".lower(), "")


def _kind_of(address: Address, settings: Settings) -> ForgeKind:
    kind = next((kind for kind in KINDS if address.host in _hosts(kind, settings)), None)
    if kind is None:
        raise InvalidInputError(
            f"repository: {address.host} is not a known forge.",
            remedy=f"Where the worker (`septet up`) runs, {_naming(address.host)}, and start the worker again. "
            "Or give a path on this machine.",
        )
    folders = address.project.count("/") + 1
    if folders < 2 or (folders > 2 and not kind.nests):  # noqa: PLR2004 -- an owner and a name
        message = f"repository: {address.url} is not a {kind.title} repository."
        raise InvalidInputError(message, remedy=f"Give https://{address.host}/owner/name.")
    return kind


def _hosts(kind: ForgeKind, settings: Settings) -> tuple[str, ...]:
    hosts: tuple[str, ...] = getattr(settings, f"{kind.name}_hosts")
    return hosts


def _token(kind: ForgeKind, address: Address, settings: Settings) -> str | None:
    token: SecretStr | None = getattr(settings, f"{kind.name}_token")
    if token is not None:
        return token.get_secret_value()
    if kind is GITHUB and settings.github_app_id and settings.github_app_key_file is not None:
        app = GitHubApp(settings.github_app_id, settings.github_app_key_file)
        return INSTALLATIONS.token(app, github_api_url(address, settings.github_api_url), address.project)
    if kind.login and kind.login[0] in settings.forge_logins:
        return _login_token(kind.login, address.host, settings.forge_login_env)
    return None
