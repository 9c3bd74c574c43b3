"""Lends the user's logins to agents: each run gets a copy of a login, and a refreshed copy is written back.

A login file's lock is held only while a copy is made or written back. A loan is a file that describes a copy, and
contains no secrets. If a worker dies, the next start with the login, the next worker or the janitor writes the
copy back.

A refresh token works only once. A login that would expire during a run is lent as an expired login. The first
agent then refreshes the login at once, and other agents wait for the new login.
"""

import hashlib
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from septet.agents.clis.login_files import Login, LoginFile, digest_of
from septet.agents.clis.plain_settings import read_object
from septet.agents.clis.registry import ADAPTERS
from septet.system.durable import hold_lock, read_struct, write_durably
from septet.system.guarded_folder import GuardedFolder
from septet.system.keys import keys_in
from septet.system.masking import hide_of

_LOCK: Final = "lock"
_LIMIT_BYTES: Final = 256 * 1024
"""The size of the largest login file."""
_REFRESH_SECONDS: Final = 60.0
"""The seconds that other agents wait for an agent to refresh its copy of a login."""
_LONGEST_RUN_SECONDS: Final = 3600.0
"""The longest validity, in seconds, that a run requires of a login, even if the run may take longer."""
_MARGIN_SECONDS: Final = 600.0
"""The validity, in seconds, that a login needs beyond the run's time: CLIs refresh a login before it expires."""

_log: Final = logging.getLogger(__name__)


class LoginBusyError(Exception):
    """Another agent is about to refresh this login: the login is available again in a moment."""


class Loan(msgspec.Struct, frozen=True):
    """A file that describes the copy of a login in an agent's home; the file contains no secrets."""

    login: str
    """The path of the user's login file."""
    agent: str
    folder: str
    """The folder with the copy, inside a work order's home."""
    name: str
    """The name of the copy, and of the user's file."""
    lent: str
    """A digest of the login in the user's file when the copy was made."""
    given: str
    """A digest of the copy at the time of the loan."""
    lent_at: float
    """The time of the loan, in seconds since the epoch."""
    is_due: bool = False
    """Whether the CLI refreshes the copy as it starts."""
    written: str = ""
    """A digest of the login that is about to replace `lent` in the user's file; empty if there is none."""


@dataclass(frozen=True, slots=True)
class LoginCopy:
    """A copy of a login, in an agent's home."""

    agent: str
    file: LoginFile
    login: Path
    home: Path
    """The home, in which guests write."""
    borrower: str
    """The name of the loan's file: the names of the work order, the agent and the login file."""

    @property
    def name(self) -> str:
        """The path of the copy, relative to the home."""
        return _name_in_home(self.file)


@dataclass(frozen=True, slots=True)
class Logins:
    """The logins of this host's user, which are copied for runs and written back after a refresh."""

    root: Path
    """`STATE/logins`."""
    write: Callable[[Path, bytes], None] = write_durably
    """The function that writes a file, whole or not at all."""

    def lend(self, copy: LoginCopy, run_seconds: float) -> None:
        """Copy the user's login into a work order's home; remove an old copy if the user has no login.

        Raises:
            LoginBusyError: Another agent is about to refresh the login.
            OSError: The disk refused.
        """
        loans = self._folder(copy.login)
        own = loans / f"{copy.borrower}.json"
        if not (copy.login.exists() or own.exists()):
            return
        with hold_lock(loans / _LOCK):
            self._take_all_back(loans)
            login, now = copy.file.read(read_if_possible(copy.login)), time.time()
            if login is None:
                GuardedFolder(copy.home).remove(copy.name)
                return
            expires_at = copy.file.expires_at(login)
            longest = min(run_seconds, _LONGEST_RUN_SECONDS) + _MARGIN_SECONDS
            is_due = expires_at is not None and expires_at < now + longest
            if is_due and any(_is_refreshing(path, now) for path in _notes(loans) if path != own):
                raise LoginBusyError(str(copy.login))
            given = copy.file.as_expired(login) if is_due else login
            digests = (digest_of(login), digest_of(given))
            place = copy.home / copy.name
            loan = Loan(str(copy.login), copy.agent, str(place.parent), place.name, *digests, now, is_due)
            self.write(own, msgspec.json.encode(loan))
            GuardedFolder(copy.home).write(copy.name, msgspec.json.encode(given))

    def take_back(self, home: Path, *, is_over: bool) -> None:
        """Write the refreshed logins in a home back to the user.

        If no process works in the home (`is_over`), this also deletes the copies.

        Raises:
            OSError: The disk refused.
        """
        for loans in self._all():
            if not any(_loan_in(path, home) for path in _notes(loans)):
                continue
            with hold_lock(loans / _LOCK):
                for path in _notes(loans):
                    loan = _loan_in(path, home)
                    if loan is None:
                        continue
                    self._take_back(path)
                    if is_over:
                        _remove_copy(loan)
                        path.unlink(missing_ok=True)

    def take_all_back(self) -> None:
        """Write all refreshed logins back to the user, including copies that killed workers left.

        Raises:
            OSError: The disk refused.
        """
        for loans in self._all():
            with hold_lock(loans / _LOCK):
                self._take_all_back(loans)

    def close(self, folder: Path) -> None:
        """Write the logins of a home back to the user and delete their loans; the caller then deletes the home.

        Raises:
            OSError: The disk refused.
        """
        for loans in self._all():
            with hold_lock(loans / _LOCK):
                for path in _notes(loans):
                    if _loan_in(path, folder) is not None:
                        self._take_back(path)
                        path.unlink()

    def _take_all_back(self, loans: Path) -> None:
        for path in _notes(loans):
            self._take_back(path)

    def _take_back(self, path: Path) -> None:
        """Write a copy back if the CLI has refreshed the copy and the user's own login has not changed since."""
        loan = read_struct(path, Loan)
        file = _file_of(loan) if loan is not None else None
        if loan is None or file is None or file.tokens is None:
            return
        copy = file.read(GuardedFolder(_home_of(loan, file)).read(_name_in_home(file), _LIMIT_BYTES))
        if copy is None or digest_of(copy) == loan.given:
            return
        own = Path(loan.login)
        content = read_if_possible(own)
        login = file.read(content)
        if login is not None and file.has_tokens_of(login, copy):  # their writer was killed before the note
            self._note(path, loan, login, copy)
            return
        if content is None or login is None or digest_of(login) not in {loan.lent, loan.written}:
            _log.warning("login_changed_meanwhile: %s is not what %s was made of", loan.login, loan.folder)
            return
        refusal = file.refusal(login, copy, time.time())
        if refusal:
            _log.warning("login_not_written_back: that of %s, for %s", loan.folder, refusal)
            return
        merged = file.merge(content, copy)
        refreshed = file.read(merged)
        both = msgspec.structs.replace(loan, lent=digest_of(login), written=digest_of(refreshed))
        self.write(path, msgspec.json.encode(both))
        self.write(own.resolve(), merged)
        hide_of(loan.login, keys_in(read_object(merged)))
        self._note(path, loan, refreshed, copy)
        _log.info("login_written_back: %s", loan.login)

    def _note(self, path: Path, loan: Loan, login: Login | None, copy: Login) -> None:
        """Record in the loan that the user's file and the copy now hold the same login."""
        digests = {"lent": digest_of(login), "given": digest_of(copy), "written": ""}
        self.write(path, msgspec.json.encode(msgspec.structs.replace(loan, **digests, is_due=False)))

    def _all(self) -> list[Path]:
        return sorted(path for path in self.root.iterdir() if path.is_dir()) if self.root.is_dir() else []

    def _folder(self, login: Path) -> Path:
        return self.root / hashlib.sha256(str(login.resolve()).encode()).hexdigest()[:16]


def _is_refreshing(path: Path, now: float) -> bool:
    """Return whether an agent may be refreshing its copy: a refresh is due, and the loan is under a minute old."""
    loan = read_struct(path, Loan)
    return loan is not None and loan.is_due and 0 <= now - loan.lent_at < _REFRESH_SECONDS


def _notes(loans: Path) -> list[Path]:
    return sorted(loans.glob("*.json"))


def _loan_in(path: Path, home: Path) -> Loan | None:
    """Read a loan's file; return the loan if its copy of the login is in `home`, else `None`."""
    loan = read_struct(path, Loan)
    return loan if loan is not None and Path(loan.folder).is_relative_to(home) else None


def _file_of(loan: Loan) -> LoginFile | None:
    adapter = ADAPTERS.get(loan.agent)
    files = adapter.capabilities.logins if adapter is not None else ()
    return next((file for file in files if Path(file.name).name == loan.name), None)


def _remove_copy(loan: Loan) -> None:
    file = _file_of(loan)
    if file is not None:
        with suppress(FileNotFoundError):  # the home has gone
            GuardedFolder(_home_of(loan, file)).remove(_name_in_home(file))


def _home_of(loan: Loan, file: LoginFile) -> Path:
    """Return a copy's home from the loan's text alone, because a guest may rename folders on disk."""
    return Path(loan.folder, loan.name).parents[len(Path(_name_in_home(file)).parts) - 1]


def _name_in_home(file: LoginFile) -> str:
    return file.name.removeprefix("~/")


def read_if_possible(path: Path) -> bytes | None:
    """Return the content of one of the user's own files; `None` if the file cannot be read."""
    with suppress(OSError):
        return path.read_bytes()
    return None
