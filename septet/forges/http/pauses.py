"""Pauses that forges request: one pause for all requests that count for one rate limit."""

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from septet.errors import ForgeUnavailableError
from septet.system.durable import write_atomically
from septet.telemetry.metrics import FORGE_PAUSES
from septet.telemetry.recorder import RECORDER

_LONGEST_SECONDS: Final = 3600.0
"""The longest pause in seconds, even if a forge names a longer pause, because forges count by the hour."""
_UNNAMED_SECONDS: Final = 60.0
"""The first pause if a refusal names no time: GitHub requires at least a minute, and more at each refusal."""
_MOST_KEYS: Final = 10_000
_TOLD_SECONDS: Final = 5.0
"""The shortest pause, and the smallest extension of a known pause, that is reported to other hosts."""
_WAITING_SECONDS: Final = 30.0
"""The longest wait of one client in all; a longer pause is an error, and the work order waits."""
_LEAST_SECONDS: Final = 1.0
"""The shortest wait, even if the forge names a shorter wait, because the forge has just refused."""
_RESETS: Final = ("x-ratelimit-reset", "ratelimit-reset")


def pause_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a forge requests to wait; `None` if the answer names no time.

    The time is in `Retry-After`, or in the reset time of a limit that is used up.
    """
    retry_after = headers.get("retry-after", "")
    if retry_after.isdecimal():
        return float(retry_after)
    if not is_spent(headers):
        return None
    reset = next((headers[name] for name in _RESETS if headers.get(name, "").isdecimal()), "")
    return max(float(reset) - time.time(), 1.0) if reset else None


def is_spent(headers: Mapping[str, str]) -> bool:
    """Return whether an answer reports that the rate limit is used up."""
    return any(headers.get(name) == "0" for name in ("x-ratelimit-remaining", "ratelimit-remaining"))


class FleetPauses(Protocol):
    """The pauses that all hosts share through a server; if the server does not answer, no pause is known."""

    def until(self, budget: str) -> float:
        """Return the end of a rate limit's pause, in seconds since the epoch; 0 if no host reported a pause."""

    def note(self, budget: str, host: str, until: float) -> None:
        """Report a rate limit's pause, which ends at `until` in seconds since the epoch, to the other hosts."""


@dataclass(slots=True)
class ForgePauses:
    """The pauses of all forges, shared by all workers, so that no worker uses a rate limit that is used up."""

    folder: Path | None = None
    """The folder by which the workers of one host share pauses; `None` if only this process uses its pauses."""
    fleet: FleetPauses | None = None
    """The server by which hosts share pauses; `None` if each host learns of a limit from the forge."""
    clock: Callable[[], float] = time.time
    _until: dict[str, float] = field(default_factory=dict)
    """The end of the pause, by the machine's clock, for each rate limit."""
    _budgets: dict[str, str] = field(default_factory=dict)
    """The shared rate limit of each key whose requests count for a limit of several keys."""
    _unnamed: dict[str, float] = field(default_factory=dict)
    """The seconds of the last pause for which the forge named no time, for each rate limit."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count_for(self, token: str, budget: str) -> None:
        """Count the requests of a key for a limit that other keys share, such as an App's installation."""
        with self._lock:
            self._budgets[token] = budget
            if len(self._budgets) > _MOST_KEYS:  # keys of an App last an hour
                del self._budgets[next(iter(self._budgets))]

    def note(self, api_url: str, token: str | None, seconds: float) -> None:
        """Start a pause on this host, and also on the other hosts unless the pause is short."""
        seconds = min(seconds, _LONGEST_SECONDS)
        host = urlsplit(api_url).hostname or api_url
        RECORDER.record(FORGE_PAUSES, seconds, host=host)
        budget, now = self._budget(api_url, token), self.clock()
        known = self._known_until(budget)
        self._keep(budget, now + seconds)
        if self.fleet is not None and seconds >= _TOLD_SECONDS and now + seconds > known + _TOLD_SECONDS:
            self.fleet.note(budget, host, now + seconds)

    def note_unnamed(self, api_url: str, token: str | None) -> float:
        """Start a pause after a refusal without a time, and return the pause's seconds.

        A refusal soon after such a pause makes the next pause twice as long; a refusal during a pause does not.
        """
        budget, now = self._budget(api_url, token), self.clock()
        until = self._known_until(budget)
        with self._lock:
            last = self._unnamed.get(budget, 0.0)
            if now < until:
                return until - now
            seconds = min(2 * last, _LONGEST_SECONDS) if now < until + last else _UNNAMED_SECONDS
            self._unnamed[budget] = seconds
        self.note(api_url, token, seconds)
        return seconds

    def clear(self) -> None:
        """Forget all pauses of this process."""
        with self._lock:
            self._until.clear()
            self._unnamed.clear()
            self._budgets.clear()

    def check(self, api_url: str, token: str | None, what: str) -> None:
        """Check that no pause forbids a request.

        Raises:
            ForgeUnavailableError: A pause is not over; the error has the remaining seconds.
        """
        budget, now = self._budget(api_url, token), self.clock()
        until = self._known_until(budget)
        if until <= now and self.fleet is not None:
            until = self.fleet.until(budget)
            if now < until <= now + _LONGEST_SECONDS:
                self._keep(budget, until)
        seconds = until - now
        if 0 < seconds <= _LONGEST_SECONDS:  # longer: the machine's clock was set back
            message = f"{api_url} takes no more requests for {seconds:.0f} s ({what})."
            raise ForgeUnavailableError(message, retry_after_seconds=seconds)

    def _budget(self, api_url: str, token: str | None) -> str:
        """Return a name for the rate limit of a key at an API; the name reveals neither the API nor the key."""
        with self._lock:
            whose = self._budgets.get(token or "", token or "")
        return hashlib.sha256(f"{api_url} {whose}".encode()).hexdigest()

    def _known_until(self, budget: str) -> float:
        """Return the end of the pause that any worker of this host has recorded."""
        with self._lock:
            until = self._until.get(budget, 0.0)
        if self.folder is None:
            return until
        path = self.folder / budget
        try:
            noted_until = float(path.read_bytes())
            if noted_until <= self.clock():  # the pause is over
                path.unlink(missing_ok=True)
        except (OSError, ValueError):
            return until
        return max(until, noted_until)

    def _keep(self, budget: str, until: float) -> None:
        with self._lock:
            self._until[budget] = until = max(self._until.get(budget, 0.0), until)
        if self.folder is not None:
            with suppress(OSError):  # the other workers learn of the limit from the forge
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_atomically(self.folder / budget, str(until).encode())


PAUSES: Final = ForgePauses()
"""This process's pauses. `folder` shares the pauses with all workers of the host, and `fleet` with all hosts."""


@dataclass(slots=True)
class ForgePatience:
    """Waits for a client whose reads an API refuses for a moment; all its waits together have a limit."""

    left: float = _WAITING_SECONDS
    refusals: int = 0
    """The number of consecutive refusals that named no time."""

    def wait(self, seconds: float) -> bool:
        """Wait for `seconds`; return `False` at once if less time is left."""
        seconds = max(seconds, _LEAST_SECONDS)
        if seconds > self.left:
            return False
        self.left -= seconds
        time.sleep(seconds)
        return True

    def wait_unnamed(self, seconds: float) -> bool:
        """Wait `seconds` after a refusal without a time, and twice as long each further time; see `wait`."""
        waited = self.wait(seconds * 2**self.refusals)
        self.refusals += waited
        return waited

    def await_turn(self, api_url: str, token: str | None, what: str) -> None:
        """Wait until a forge's pause is over.

        Raises:
            ForgeUnavailableError: The pause is longer than the time left; the error has the remaining seconds.
        """
        while True:
            try:
                PAUSES.check(api_url, token, what)
            except ForgeUnavailableError as error:
                if not self.wait(error.retry_after_seconds or 0.0):
                    raise
            else:
                return
