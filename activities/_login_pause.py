"""A login whose usage limit is reached starts no agent on any host until the limit begins anew."""

import hashlib
import time
from typing import Final

from activities.host import Host
from septet.agents.clis.adapter import Adapter, select_variables
from septet.contracts.quota import QuotaPause
from septet.errors import AgentApiUnavailableError

_KEYS: Final = ("KEY", "TOKEN")
_DIGEST_LENGTH: Final = 24
_MARGIN_SECONDS: Final = 1.0
"""Clocks differ."""


def login_digest(host: Host, adapter: Adapter) -> str:
    """Return what names a login on all hosts that have it: a digest of its keys, else that of this host's own."""
    env = select_variables(host.agents.env, adapter.login)
    names = [name for name in sorted(env) if env[name] and name.endswith(_KEYS)]
    parts = [f"{name}={env[name]}" for name in names] or [host.id]
    return hashlib.sha256("\0".join((adapter.name, *parts)).encode()).hexdigest()[:_DIGEST_LENGTH]


def refuse_while_paused(pause: QuotaPause | None) -> None:
    """Refuse to start an agent with a login that is paused.

    Raises:
        AgentApiUnavailableError: It is; the activity is tried again when the limit begins anew.
    """
    left = pause.until - time.time() if pause is not None else 0.0
    if pause is not None and left > 0:
        message = (
            f"The usage limit of {pause.agent}'s login is reached, and no agent starts with it: {pause.message}"
        )
        raise AgentApiUnavailableError(
            message, remedy="It continues by itself.", retry_after_seconds=left + _MARGIN_SECONDS
        )


def pause_of(adapter: Adapter, error: AgentApiUnavailableError) -> QuotaPause:
    """Return the pause that an agent's usage limit asks for."""
    until = time.time() + (error.retry_after_seconds or 0.0)
    return QuotaPause(agent=adapter.name, until=until, message=error.message[:500])
