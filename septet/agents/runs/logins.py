"""Lend the user's logins to agents: make a copy for each run, and write a refreshed login back.

A lock on each login file is held while a copy is made or written back, and never through a run. Loans, which are
records on disk without any secret, name the copies that exist: after a worker's death, the next start with the
same login, the next worker, or the janitor writes the copy back.

A refresh token works once, so two agents must not use the same token. A login that would expire within a run is
lent as an expired login: the first agent refreshes the login within a second, and no other agent gets the login
until the new login is written back.
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
from septet.system.durable import read_struct, write_durably
from septet.system.guarded_folder import GuardedFolder
from septet.system.keys import keys_in
from septet.system.locks import hold_lock
from septet.system.masking import hide_of

_LOCK: Final = "lock"
_LIMIT_BYTES: Final = 256 * 1024
"""The size of the largest login file."""
_REFRESH_SECONDS: Final = 60.0
"""The seconds that other agents wait for an agent to refresh its copy."""
_LONGEST_RUN_SECONDS: Final = 3600.0
"""The longest validity, in seconds, that a run requires of a login, even if the run may take longer."""
_MARGIN_SECONDS: Final = 600.0
"""The validity, in seconds, that a login needs beyond the run's time: CLIs refresh a login before it expires."""

_log: Final = logging.getLogger(__name__)


class LoginBusyError(Exception):
    """Another agent is about to refresh this login: the login is available again in a moment."""


class Loan(msgspec.Struct, frozen=True):
    """The record of an agent's copy of a login, without secrets."""

    login: str
    """The path of the user's file."""
    agent: str
    folder: str
    """The folder of a work order's home that holds the copy."""
    name: str
    """The name of the copy, and of the user's file."""
    lent: str
    """A digest of the login that the user's file held."""
    given: str
    """A digest of the copy."""
    lent_at: float
    """The time of the copy, in seconds since the epoch."""
    is_due: bool = False
    """Whether the CLI refreshes the copy as it starts."""
    written: str = ""
    """A digest of the login that replaces `lent`; after a kill, the user's file holds one of these two logins."""


@dataclass(frozen=True, slots=True)
class LoginCopy:
    """A copy of a login, in a work order's home."""

    agent: str
    file: LoginFile
    login: Path
    home: Path
    """The home, in which guests write."""
    borrower: str
    """The name of the loan's file: the work order, the agent and the login's file name."""

    @property
    def name(self) -> str:
        """The copy's name in the home."""
        return _name_in_home(self.file)


@dataclass(frozen=True, slots=True)
class Logins:
    """The logins of this host's user, which are copied for runs and written back after a refresh."""

    root: Path
    """`STATE/logins`."""
    write: Callable[[Path, bytes], None] = write_durably
    """The function that writes a file, whole or not at all."""

    def lend(self, copy: LoginCopy, run_seconds: float) -> None:
        """Copy the present login into a work order's home; remove an old copy if the user has no login.

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
        """Write back the logins that CLIs have refreshed in a home.

        `is_over` states that no process works in the home; the copies in the home are then removed.

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
        """Write back all refreshed logins, even those of workers that were killed earlier.

        Raises:
            OSError: The disk refused.
        """
        for loans in self._all():
            with hold_lock(loans / _LOCK):
                self._take_all_back(loans)

    def close(self, folder: Path) -> None:
        """Write back the logins of one home and remove its loans, before the home is removed.

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
        """Write one copy back if the CLI refreshed the copy and the user's own login has not changed since."""
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
        """Record in the loan that the user's file and the copy hold the same login now."""
        digests = {"lent": digest_of(login), "given": digest_of(copy), "written": ""}
        self.write(path, msgspec.json.encode(msgspec.structs.replace(loan, **digests, is_due=False)))

    def _all(self) -> list[Path]:
        return sorted(path for path in self.root.iterdir() if path.is_dir()) if self.root.is_dir() else []

    def _folder(self, login: Path) -> Path:
        return self.root / hashlib.sha256(str(login.resolve()).encode()).hexdigest()[:16]


def _is_refreshing(path: Path, now: float) -> bool:
    """Return whether a CLI got, in the last minute, a copy to refresh; false if the clock was set back."""
    loan = read_struct(path, Loan)
    return loan is not None and loan.is_due and 0 <= now - loan.lent_at < _REFRESH_SECONDS


def _notes(loans: Path) -> list[Path]:
    return sorted(loans.glob("*.json"))


def _loan_in(path: Path, home: Path) -> Loan | None:
    """Return the loan of a copy in a home; `None` for a copy in another home."""
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
    """Return the home of a copy by the path's text: a guest may rename the folders between home and copy."""
    return Path(loan.folder, loan.name).parents[len(Path(_name_in_home(file)).parts) - 1]


def _name_in_home(file: LoginFile) -> str:
    return file.name.removeprefix("~/")


def read_if_possible(path: Path) -> bytes | None:
    """Return the content of the user's own file; `None` if it cannot be read."""
    with suppress(OSError):
        return path.read_bytes()
    return None
