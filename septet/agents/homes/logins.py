"""The user's logins, as they are lent to agents: a copy for each run, and what its CLI refreshed written back.

A lock on each login file is held while copies are made and taken back, and never through a run. What says which
copies are out lies on disk, without any secret: so a copy whose worker was killed is taken back by the next start
of the same login, by the next worker, or by the janitor.

A refresh token works once, so two agents must not use the same one. A login that would expire within a run is lent
as one that has expired: the first agent refreshes it in its first second, and until the new one is written back
nobody else gets it.
"""

import hashlib
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
"""No login is longer."""
_REFRESH_SECONDS: Final = 60.0
"""After that nobody waits any longer for an agent to refresh its copy."""
_LONGEST_RUN_SECONDS: Final = 3600.0
"""A login that is valid for so long is as good as one that is valid for longer."""
_MARGIN_SECONDS: Final = 600.0
"""CLIs refresh before a login expires, not after."""

_log: Final = logging.getLogger(__name__)


class LoginBusyError(Exception):
    """Another agent is about to refresh this login: it is there again in a moment."""


class Loan(msgspec.Struct, frozen=True):
    """What is noted of a copy of a login that an agent has; no secret is in it."""

    login: str
    """The user's file."""
    agent: str
    """Whose login it is."""
    folder: str
    """The folder of a work order's home that holds the copy."""
    name: str
    """The copy's name in it, and the user's file's."""
    lent: str
    """A digest of the login that the user's file held."""
    given: str
    """A digest of the copy."""
    lent_at: float
    """When it was made, in seconds."""
    is_due: bool = False
    """Its CLI refreshes it as it starts."""
    written: str = ""
    """A digest of the login that is written into the user's file in place of that: who is killed leaves either."""


@dataclass(frozen=True, slots=True)
class LoginCopy:
    """A copy of a login, in a work order's home."""

    agent: str
    file: LoginFile
    login: Path
    """The user's file."""
    home: Path
    """The home, in which guests write."""
    borrower: str
    """The work order, and the agent: a file's name."""

    @property
    def name(self) -> str:
        """Its name in the home."""
        return _name_in_home(self.file)


@dataclass(frozen=True, slots=True)
class Logins:
    """The logins of this host's user."""

    root: Path
    """`STATE/logins`."""
    write: Callable[[Path, bytes], None] = write_durably
    """Puts a file on disk, whole or not at all."""

    def lend(self, copy: LoginCopy, run_seconds: float) -> None:
        """Give a work order's home the login as it is now; without one, none.

        Args:
            copy: What is made where.
            run_seconds: How long the run may last.

        Raises:
            LoginBusyError: Another agent is about to refresh it.
            OSError: The disk refused.
        """
        if not copy.login.exists() and not self.is_out(copy):
            return
        with self._hold_lock(copy.login) as loans:
            self._take_all_back(loans)
            login, now = copy.file.read(_read(copy.login)), time.time()
            if login is None:
                GuardedFolder(copy.home).remove(copy.name)
                return
            expires_at = copy.file.expires_at(login)
            longest = min(run_seconds, _LONGEST_RUN_SECONDS) + _MARGIN_SECONDS
            is_due = expires_at is not None and expires_at < now + longest
            own = loans / f"{copy.borrower}.json"
            if is_due and any(_is_refreshing(path, now) for path in _notes(loans) if path != own):
                raise LoginBusyError(str(copy.login))
            given = copy.file.as_expired(login) if is_due else login
            digests = (digest_of(login), digest_of(given))
            place = copy.home / copy.name
            loan = Loan(str(copy.login), copy.agent, str(place.parent), place.name, *digests, now, is_due)
            self.write(own, msgspec.json.encode(loan))
            GuardedFolder(copy.home).write(copy.name, msgspec.json.encode(given))

    def take_back(self, home: Path, *, is_over: bool) -> None:
        """Write back what CLIs have refreshed in a home; where nobody works there any more, leave no copy in it.

        Args:
            home: The home of a work order or lane, or of one agent in it.
            is_over: Whether nobody works there.

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
        """Write back what any CLI has refreshed whose worker was killed before it could.

        Raises:
            OSError: The disk refused.
        """
        for loans in self._all():
            with hold_lock(loans / _LOCK):
                self._take_all_back(loans)

    def close(self, folder: Path) -> None:
        """Take back all that agents of one home have, and leave no note of them: the home is about to go.

        Raises:
            OSError: The disk refused.
        """
        for loans in self._all():
            with hold_lock(loans / _LOCK):
                for path in _notes(loans):
                    if _loan_in(path, folder) is not None:
                        self._take_back(path)
                        path.unlink()

    def is_out(self, copy: LoginCopy) -> bool:
        """Return whether a work order's home has a copy."""
        return (self._folder(copy.login) / f"{copy.borrower}.json").exists()

    def _take_all_back(self, loans: Path) -> None:
        for path in _notes(loans):
            self._take_back(path)

    def _take_back(self, path: Path) -> None:
        """Write one copy back, where it is a later login than the user's own, which nobody has changed since."""
        loan = read_struct(path, Loan)
        file = _file_of(loan) if loan is not None else None
        if loan is None or file is None or file.tokens is None:
            return
        copy = _read_copy(loan, file)
        if copy is None or digest_of(copy) == loan.given:
            return
        own = Path(loan.login)
        content = _read(own)
        login = file.read(content)
        if login is not None and file.has_tokens_of(login, copy):  # who wrote them was killed before the note
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
        """Note that the user's file holds a login that is the copy's."""
        digests = {"lent": digest_of(login), "given": digest_of(copy), "written": ""}
        self.write(path, msgspec.json.encode(msgspec.structs.replace(loan, **digests, is_due=False)))

    def _all(self) -> list[Path]:
        return sorted(path for path in self.root.iterdir() if path.is_dir()) if self.root.is_dir() else []

    def _folder(self, login: Path) -> Path:
        return self.root / hashlib.sha256(str(login.resolve()).encode()).hexdigest()[:16]

    @contextmanager
    def _hold_lock(self, login: Path) -> Iterator[Path]:
        """Hold the lock of a login, and give the folder of its loans."""
        loans = self._folder(login)
        with hold_lock(loans / _LOCK):
            yield loans


def _is_refreshing(path: Path, now: float) -> bool:
    """Return whether a CLI got, in the last minute, a copy to refresh; false if the clock was set back."""
    loan = read_struct(path, Loan)
    return loan is not None and loan.is_due and 0 <= now - loan.lent_at < _REFRESH_SECONDS


def _notes(loans: Path) -> list[Path]:
    return sorted(loans.glob("*.json"))


def _loan_in(path: Path, home: Path) -> Loan | None:
    """Return what is noted of a copy in a home; `None` where it is another's."""
    loan = read_struct(path, Loan)
    return loan if loan is not None and Path(loan.folder).is_relative_to(home) else None


def _file_of(loan: Loan) -> LoginFile | None:
    adapter = ADAPTERS.get(loan.agent)
    files = adapter.capabilities.logins if adapter is not None else ()
    return next((file for file in files if Path(file.name).name == loan.name), None)


def _read_copy(loan: Loan, file: LoginFile) -> Login | None:
    return file.read(GuardedFolder(_home_of(loan, file)).read(_name_in_home(file), _LIMIT_BYTES))


def _remove_copy(loan: Loan) -> None:
    file = _file_of(loan)
    if file is not None:
        with suppress(FileNotFoundError):  # the home has gone
            GuardedFolder(_home_of(loan, file)).remove(_name_in_home(file))


def _home_of(loan: Loan, file: LoginFile) -> Path:
    """Return the home that a copy lies in: the folders between the two are a guest's to rename."""
    return Path(loan.folder, loan.name).parents[len(Path(_name_in_home(file)).parts) - 1]


def _name_in_home(file: LoginFile) -> str:
    return file.name.removeprefix("~/")


def _read(path: Path) -> bytes | None:
    """Return what the user's own file holds; `None` where there is none."""
    try:
        return path.read_bytes()
    except OSError:
        return None
