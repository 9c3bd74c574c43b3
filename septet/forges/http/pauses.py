"""The pauses that forges request; a pause applies to all requests that count for the same rate limit."""

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
"""The longest pause in seconds, even if a forge names a longer one: forges count requests by the hour."""
_UNNAMED_SECONDS: Final = 60.0
"""The first pause in seconds if a refusal names no time; GitHub requires at least a minute."""
_MOST_KEYS: Final = 10_000
_TOLD_SECONDS: Final = 5.0
"""Other hosts learn of a pause only if it lasts this many seconds, and this much longer than the known pause."""
_WAITING_SECONDS: Final = 30.0
"""How many seconds one client waits in all; a longer pause is an error, and the work order waits."""
_LEAST_SECONDS: Final = 1.0
"""The shortest wait in seconds, even if the forge names a shorter one."""
_RESETS: Final = ("x-ratelimit-reset", "ratelimit-reset")


def pause_seconds(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a forge requires us to wait; `None` if the answer names no time.

    The time is in `Retry-After`, or it is the reset of a used-up limit.
    """
    retry_after = headers.get("retry-after", "")
    if retry_after.isdecimal():
        return float(retry_after)
    if not is_spent(headers):
        return None
    reset = next((headers[name] for name in _RESETS if headers.get(name, "").isdecimal()), "")
    return max(float(reset) - time.time(), 1.0) if reset else None


def is_spent(headers: Mapping[str, str]) -> bool:
    """Return whether an answer's headers show a used-up rate limit."""
    return any(headers.get(name) == "0" for name in ("x-ratelimit-remaining", "ratelimit-remaining"))


class FleetPauses(Protocol):
    """Pauses that all hosts share through Temporal's server; if the server does not answer, no pause is known."""

    def until(self, budget: str) -> float:
        """Return when a rate limit's pause ends, in Unix seconds; 0 if no host reported one."""

    def note(self, budget: str, host: str, until: float) -> None:
        """Report a rate limit's pause, which ends at `until` in Unix seconds, to all hosts."""


@dataclass(slots=True)
class ForgePauses:
    """The pauses of all forges; a pause prevents requests under a used-up rate limit."""

    folder: Path | None = None
    """The folder in which the workers of one host share pauses; `None` if this process shares none."""
    fleet: FleetPauses | None = None
    """Shares pauses between hosts; `None` if each host learns of a limit by itself."""
    clock: Callable[[], float] = time.time
    _until: dict[str, float] = field(default_factory=dict)
    """For each rate limit, when its pause ends, by the machine's clock."""
    _budgets: dict[str, str] = field(default_factory=dict)
    """For each key whose limit other keys share, that limit."""
    _unnamed: dict[str, float] = field(default_factory=dict)
    """For each rate limit, the seconds of the last pause for which the forge named no time."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count_for(self, token: str, budget: str) -> None:
        """Record that requests with key `token` count for the rate limit `budget`, which other keys share."""
        with self._lock:
            self._budgets[token] = budget
            if len(self._budgets) > _MOST_KEYS:  # keys of an App last an hour
                del self._budgets[next(iter(self._budgets))]

    def note(self, api_url: str, token: str | None, seconds: float) -> None:
        """Begin a pause on this host, and if it is long, on all hosts."""
        seconds = min(seconds, _LONGEST_SECONDS)
        host = urlsplit(api_url).hostname or api_url
        RECORDER.record(FORGE_PAUSES, seconds, host=host)
        budget, now = self._budget(api_url, token), self.clock()
        known = self._known_until(budget)
        self._keep(budget, now + seconds)
        if self.fleet is not None and seconds >= _TOLD_SECONDS and now + seconds > known + _TOLD_SECONDS:
            self.fleet.note(budget, host, now + seconds)

    def note_unnamed(self, api_url: str, token: str | None) -> float:
        """Begin a pause after a refusal that named no time; return its seconds.

        A refusal soon after such a pause begins a pause of twice the length. A refusal during a pause begins none.
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
        """Raise if a pause forbids a request.

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
        """Return a name for a key's rate limit, from which nobody can learn the key."""
        with self._lock:
            whose = self._budgets.get(token or "", token or "")
        return hashlib.sha256(f"{api_url} {whose}".encode()).hexdigest()

    def _known_until(self, budget: str) -> float:
        """Return when a rate limit's pause ends, as recorded by the workers of this host."""
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
    """The waits of a client before it repeats a refused read; one limit applies to their sum."""

    left: float = _WAITING_SECONDS
    refusals: int = 0
    """How many refusals in a row named no time."""

    def wait(self, seconds: float) -> bool:
        """Wait so many seconds, and return `True`; return `False` at once if the limit forbids the wait."""
        seconds = max(seconds, _LEAST_SECONDS)
        if seconds > self.left:
            return False
        self.left -= seconds
        time.sleep(seconds)
        return True

    def wait_unnamed(self, seconds: float) -> bool:
        """Wait, as `wait` does, after a refusal that named no time; each repetition waits twice as long."""
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
