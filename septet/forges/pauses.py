"""Forges that want to be left alone for a while: one pause for all who ask with one key."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from septet.errors import ForgeUnavailableError
from septet.telemetry.metrics import FORGE_PAUSES
from septet.telemetry.recorder import RECORDER

_LONGEST_SECONDS: Final = 3600.0
"""A forge that names a longer pause is asked again after this one: limits are counted by the hour."""
_RESETS: Final = ("x-ratelimit-reset", "ratelimit-reset")
_REMAINING: Final = ("x-ratelimit-remaining", "ratelimit-remaining")


def pause_seconds(headers: Mapping[str, str]) -> float | None:
    """Return for how long a forge wants to be left alone, in seconds; `None` where it does not say.

    It says so in `Retry-After`, or by the time at which a limit begins anew of which nothing is left.
    """
    retry_after = headers.get("retry-after", "")
    if retry_after.isdecimal():
        return float(retry_after)
    if not is_spent(headers):
        return None
    reset = next((headers[name] for name in _RESETS if headers.get(name, "").isdecimal()), "")
    return max(float(reset) - time.time(), 1.0) if reset else None


def is_spent(headers: Mapping[str, str]) -> bool:
    """Say whether an answer tells that no request is left of the limit."""
    return any(headers.get(name) == "0" for name in _REMAINING)


@dataclass(slots=True)
class ForgePauses:
    """Who is left alone until when: known to all threads of this process, so that none asks into a limit."""

    _until: dict[tuple[str, str | None], float] = field(default_factory=dict)
    """By API and key: a time of the monotonic clock."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, api_url: str, token: str | None, seconds: float) -> None:
        """Let nobody ask for a while."""
        RECORDER.record(FORGE_PAUSES, min(seconds, _LONGEST_SECONDS), host=urlsplit(api_url).hostname)
        with self._lock:
            known = self._until.get((api_url, token), 0.0)
            self._until[api_url, token] = max(known, time.monotonic() + min(seconds, _LONGEST_SECONDS))

    def clear(self) -> None:
        """Let everybody ask again."""
        with self._lock:
            self._until.clear()

    def check(self, api_url: str, token: str | None, what: str) -> None:
        """See that the forge may be asked.

        Raises:
            ForgeUnavailableError: It wants to be left alone; the error says for how long.
        """
        with self._lock:
            seconds = self._until.get((api_url, token), 0.0) - time.monotonic()
        if seconds > 0:
            message = f"{api_url} takes no more requests for {seconds:.0f} s ({what})."
            raise ForgeUnavailableError(message, retry_after_seconds=seconds)


PAUSES: Final = ForgePauses()
"""Those of this process."""
