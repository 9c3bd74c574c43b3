"""Which account a key writes by: what somebody else wrote is not the engine's, whatever mark it carries."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from septet.errors import ForgeError, ForgeUnavailableError, NotFoundError

_MOST_KEYS: Final = 100
BOT: Final = "[bot]"
"""How the names of GitHub's Apps end; no person's name can."""


@dataclass(slots=True)
class KeyAccounts:
    """The accounts of this process's keys, each asked for once."""

    _names: dict[tuple[str, str | None], str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def name_of(self, api_url: str, token: str | None, ask: Callable[[], str]) -> str:
        """Return the account that a key writes by; empty where the forge does not tell, as for an App's key.

        Args:
            api_url: Where.
            token: The key.
            ask: Asks the forge.

        Raises:
            ForgeUnavailableError: The forge did not answer.
        """
        with self._lock:
            if (name := self._names.get((api_url, token))) is not None:
                return name
        try:
            name = ask()
        except ForgeUnavailableError:
            raise
        except (ForgeError, NotFoundError):
            name = ""
        with self._lock:
            while len(self._names) >= _MOST_KEYS:
                del self._names[next(iter(self._names))]
            self._names[api_url, token] = name
        return name


OWN_ACCOUNTS: Final = KeyAccounts()
