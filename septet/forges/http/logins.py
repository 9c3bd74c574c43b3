"""Logins of a forge's own program: `gh` for GitHub, `glab` for GitLab; read only if the settings name it."""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from septet.errors import ForgeError
from septet.system.masking import hide_of
from septet.system.processes import run

_KEPT_SECONDS: Final = 60.0
"""The age at which a token is read again: a login may change, and a program's start outlasts a request."""
_TIMEOUT_SECONDS: Final = 20.0


@dataclass(slots=True)
class LoginTokens:
    """The tokens that programs printed last, by program and host."""

    _known: dict[tuple[tuple[str, ...], str], tuple[float, str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def token(self, argv: Sequence[str], host: str, env: Mapping[str, str]) -> str:
        """Return the token that a program has for a host.

        Args:
            argv: The program's command that prints the token; the host is appended.
            host: The host of the forge.
            env: The program's environment.

        Raises:
            ForgeError: The program does not exist, or has no login for the host.
        """
        key = (tuple(argv), host)
        with self._lock:
            known = self._known.get(key)
            if known is not None and time.monotonic() - known[0] < _KEPT_SECONDS:
                return known[1]
            token = _ask([*argv, host], host, env)
            self._known[key] = (time.monotonic(), token)
            return token


def _ask(argv: Sequence[str], host: str, env: Mapping[str, str]) -> str:
    login = f"Run `{argv[0]} auth login --hostname {host}` as the worker's user, or set the forge's token."
    try:
        done = run(argv, env=env, timeout_seconds=_TIMEOUT_SECONDS)
    except OSError as error:
        message = f"`{argv[0]}` could not be started: {error.strerror}."
        raise ForgeError(
            message,
            remedy=f"Install {argv[0]}, or start the worker (`septet up`) again without it in "
            "SEPTET_FORGE_LOGINS.",
        ) from error
    token = done.stdout.decode("utf-8", "replace").strip()
    if done.exit_code != 0 or done.timed_out or not token or len(token.split()) != 1:
        raise ForgeError(f"`{argv[0]}` has no login for {host}.", remedy=login)
    hide_of(f"{argv[0]}, {host}", [token])
    return token


LOGINS: Final = LoginTokens()
"""The instance of this process."""
