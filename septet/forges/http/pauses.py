"""Forges that want to be left alone for a while: one pause for all who ask within one limit."""

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
"""A forge that names a longer pause is asked again after this one: limits are counted by the hour."""
_UNNAMED_SECONDS: Final = 60.0
"""GitHub wants at least a minute where it names no time, and longer each time that it refuses again."""
_MOST_KEYS: Final = 10_000
_TOLD_SECONDS: Final = 5.0
"""A pause that is shorter is not worth a word to the other hosts, nor is one that is longer by less than that."""
_WAITING_SECONDS: Final = 30.0
"""For all that is asked at once; a longer wait is told, and the work order waits."""
_LEAST_SECONDS: Final = 1.0
"""Also where the forge names less: it has just refused."""
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


class FleetPauses(Protocol):
    """What all hosts know of limits that are spent; a server that does not answer knows nothing."""

    def until(self, budget: str) -> float:
        """Return until when nobody is to ask, in seconds since the epoch; 0 where nobody has said so."""

    def note(self, budget: str, host: str, until: float) -> None:
        """Tell the other hosts.

        Args:
            budget: Whose limit it is.
            host: The host whose API it is, for people.
            until: Seconds since the epoch.
        """


@dataclass(slots=True)
class ForgePauses:
    """Who is left alone until when: known to all workers, so that none asks into a limit."""

    folder: Path | None = None
    """Where workers of one host tell each other; without one, the threads of this process do."""
    fleet: FleetPauses | None = None
    """How hosts tell each other; without it, each learns of a limit from the forge."""
    clock: Callable[[], float] = time.time
    _until: dict[str, float] = field(default_factory=dict)
    """By budget: a time of the machine's clock."""
    _budgets: dict[str, str] = field(default_factory=dict)
    """By key: whose limit its requests count for, where that is not the key's own."""
    _unnamed: dict[str, float] = field(default_factory=dict)
    """By budget: how long the last pause was for which the forge named no time."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count_for(self, token: str, budget: str) -> None:
        """Let the requests of a key count for a limit that other keys share, such as an App's installation."""
        with self._lock:
            self._budgets[token] = budget
            if len(self._budgets) > _MOST_KEYS:  # keys of an App last an hour
                del self._budgets[next(iter(self._budgets))]

    def note(self, api_url: str, token: str | None, seconds: float) -> None:
        """Let nobody ask for a while, on any host: who asks after this has returned is told."""
        seconds = min(seconds, _LONGEST_SECONDS)
        host = urlsplit(api_url).hostname or api_url
        RECORDER.record(FORGE_PAUSES, seconds, host=host)
        budget, now = self._budget(api_url, token), self.clock()
        known = self._known_until(budget)
        self._keep(budget, now + seconds)
        if self.fleet is not None and seconds >= _TOLD_SECONDS and now + seconds > known + _TOLD_SECONDS:
            self.fleet.note(budget, host, now + seconds)

    def note_unnamed(self, api_url: str, token: str | None) -> float:
        """Let nobody ask for a while where the forge names no time; return for how long, in seconds.

        A refusal soon after such a pause makes the next one twice as long; refusals during a pause do not.
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
        """Let everybody ask again."""
        with self._lock:
            self._until.clear()
            self._unnamed.clear()
            self._budgets.clear()

    def check(self, api_url: str, token: str | None, what: str) -> None:
        """See that the forge may be asked.

        Raises:
            ForgeUnavailableError: It wants to be left alone; the error says for how long.
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
        """Return a name for an API and a key that tells neither."""
        with self._lock:
            whose = self._budgets.get(token or "", token or "")
        return hashlib.sha256(f"{api_url} {whose}".encode()).hexdigest()

    def _known_until(self, budget: str) -> float:
        """Return until when a worker of this host says that nobody is to ask."""
        with self._lock:
            until = self._until.get(budget, 0.0)
        return max(until, self._noted_until(budget))

    def _keep(self, budget: str, until: float) -> None:
        """Have all workers of this host know of a pause."""
        with self._lock:
            self._until[budget] = until = max(self._until.get(budget, 0.0), until)
        if self.folder is not None:
            with suppress(OSError):  # the others learn of it from the forge
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_atomically(self.folder / budget, str(until).encode())

    def _noted_until(self, budget: str) -> float:
        """Return until when another worker of this host says that nobody is to ask."""
        if self.folder is None:
            return 0.0
        path = self.folder / budget
        try:
            until = float(path.read_bytes())
            if until <= self.clock():
                path.unlink(missing_ok=True)
        except (OSError, ValueError):
            return 0.0
        return until


PAUSES: Final = ForgePauses()
"""Those of this process, of its host once a worker has named the folder, and of all hosts once it has a server."""


@dataclass(slots=True)
class ForgePatience:
    """How long a read waits for an API that refuses reads for a moment."""

    left: float = _WAITING_SECONDS
    refusals: int = 0
    """How many reads in a row were refused without a time."""

    def wait(self, seconds: float) -> bool:
        """Wait for so many seconds; `False`, at once, where they are more than what is left."""
        seconds = max(seconds, _LEAST_SECONDS)
        if seconds > self.left:
            return False
        self.left -= seconds
        time.sleep(seconds)
        return True

    def wait_unnamed(self, seconds: float) -> bool:
        """Wait where the forge names no time: for `seconds`, and twice as long each time; as `wait`."""
        waited = self.wait(seconds * 2**self.refusals)
        self.refusals += waited
        return waited

    def await_turn(self, api_url: str, token: str | None, what: str) -> None:
        """Wait until a forge may be asked that wants to be left alone.

        Raises:
            ForgeUnavailableError: That takes longer; the error says how long.
        """
        while True:
            try:
                PAUSES.check(api_url, token, what)
            except ForgeUnavailableError as error:
                if not self.wait(error.retry_after_seconds or 0.0):
                    raise
            else:
                return
