"""The account of a key: another account's text is not the engine's, even if the text carries a mark."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from septet.errors import ForgeError, ForgeUnavailableError, NotFoundError

_MOST_KEYS: Final = 100
BOT: Final = "[bot]"
"""The end of the names of GitHub's Apps; no person's name can end so."""


@dataclass(slots=True)
class KeyAccounts:
    """The accounts of this process's keys, each requested once."""

    _names: dict[tuple[str, str | None], str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def name_of(self, api_url: str, token: str | None, ask: Callable[[], str]) -> str:
        """Return the account of a key; empty if the forge refuses to report the account.

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
