"""The homes of work orders and lanes: a CLI in a sandbox finds these folders in place of the user's own folders.

A home holds the session that a run continues, a copy of the login during the run, and settings without private
data. Each new process of an agent gets new folders. The session that the process continues is restored.
"""

import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from septet.agents.clis.adapter import Adapter, Machine
from septet.agents.clis.capabilities import Capabilities
from septet.agents.clis.own_files import locate, own_folders_by_name
from septet.agents.clis.plain_settings import read_document
from septet.agents.guest.paths import OwnFolder
from septet.agents.runs.logins import LoginCopy, Logins, read_if_possible
from septet.agents.runs.sessions import SessionFolder, copy_files, copy_session, user_sessions
from septet.system.guarded_folder import GuardedFolder
from septet.system.keys import keys_in
from septet.system.masking import hide_of

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True, slots=True)
class SessionStore:
    """The sessions of earlier processes: one numbered folder for each process."""

    root: Path
    facts: Capabilities

    def take(self, home: GuardedFolder) -> None:
        """Move all sessions from the CLI's folder into the store."""
        names = [name for pattern in self._patterns() for name in home.find(pattern)]
        if not names:
            return
        self.root.mkdir(mode=0o700, exist_ok=True)
        folder = self.root / str(max((int(visit.name) for visit in self._visits()), default=0) + 1)
        folder.mkdir(mode=0o700)
        for name in names:
            home.move(name, GuardedFolder(folder))

    def give(self, session_id: str, home: GuardedFolder) -> None:
        """Move a session's files from the store into the CLI's folder; do nothing for an unknown session."""
        if not _ID.fullmatch(session_id):
            return
        for visit in sorted(self._visits(), key=lambda visit: int(visit.name), reverse=True):
            folder = GuardedFolder(visit)
            names = [name for pattern in self._patterns(session_id) for name in folder.find(pattern)]
            mark = session_id.encode()
            if self.facts.session_database and not any(folder.contains(name, mark) for name in names):
                continue
            for name in names:
                folder.move(name, home)
            if names:
                return

    def _visits(self) -> list[Path]:
        return [path for path in self.root.glob("*") if path.name.isdecimal()]

    def _patterns(self, session_id: str = "") -> Iterator[str]:
        """Yield the file patterns of a session, or of all sessions if `session_id` is empty."""
        start = session_id[:8] or "*"
        for pattern in filter(None, (self.facts.session_files, *self.facts.session_copies)):
            yield pattern.format(id=session_id or "*", start=start)
        if self.facts.session_database:
            yield from (f"{self.facts.session_database}{part}" for part in ("", "-wal", "-shm"))


_STORE: Final = "kept"
_NO_WORD: Final = re.compile(r"[^A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class AgentHome:
    """The folders of one CLI in the home of a work order or lane."""

    root: Path
    """`STATE/homes/<work order or lane>/<agent>`; guests, perhaps of a separate user, write in this folder."""
    adapter: Adapter
    machine: Machine
    logins: Logins

    @property
    def packages(self) -> Path:
        """The folder with unpacked packages of CLIs, which all homes share."""
        return self.root.parents[2] / "packages"

    @property
    def folders(self) -> tuple[OwnFolder, ...]:
        """The folders of the home, with the paths at which the CLI finds them."""
        folders = own_folders_by_name(self.adapter, self.machine).items()
        return tuple(OwnFolder(self.root / name, path) for name, path in folders)

    @property
    def sessions(self) -> SessionFolder | None:
        """The folder of the CLI's sessions; `None` for a CLI without sessions."""
        return next((SessionFolder(folder.source, self.root) for folder in self.folders), None)

    @property
    def _store(self) -> SessionStore:
        return SessionStore(self.root / _STORE, self.adapter.capabilities)

    def open(self) -> tuple[OwnFolder, ...]:
        """Make the folders, which only this user may enter, and return the folders; existing files stay.

        Raises:
            OSError: The disk refused.
        """
        is_new = not self.root.exists()
        for closed in (self.root.parent, self.root):
            closed.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in self.folders:
            GuardedFolder(self.root, str(folder.source.relative_to(self.root))).make_closed()
        notes = self.adapter.capabilities.notes_of_workspace
        users, own = user_sessions(self.adapter, self.machine), self.sessions
        if notes and is_new and users is not None and own is not None:
            copy_files(notes.format(order=_NO_WORD.sub("-", self.root.parent.name)), users, own)
        return self.folders

    def prepare(self, session_id: str | None, run_seconds: float, *, anew: bool = True) -> tuple[OwnFolder, ...]:
        """Prepare the home for a run and return its folders; the caller holds the writer's lock.

        With `anew`, the home, which no process may be using, is cleared first. The session `session_id` is
        restored from an earlier run, or copied from the user's own folders.

        Raises:
            LoginBusyError: Another agent is about to refresh the login.
            OSError: The disk refused.
        """
        hide_keys_of(self.adapter, self.machine)
        self.logins.take_back(self.root, is_over=True)  # the run before may have had another login
        if anew:
            self._clear()
        folders = self.open()
        facts, home = self.adapter.capabilities, GuardedFolder(self.root)
        for file in facts.logins:
            login = locate(self.adapter, self.machine, file.name)
            borrower = f"{self.root.parent.name}.{self.adapter.name}.{login.name}"
            self.logins.lend(LoginCopy(self.adapter.name, file, login, self.root, borrower), run_seconds)
        for settings in facts.settings:
            content = settings.reduce(read_if_possible(locate(self.adapter, self.machine, settings.name)))
            if content is None:
                home.remove(settings.name.removeprefix("~/"))
            else:
                home.write(settings.name.removeprefix("~/"), content)
        users, own = user_sessions(self.adapter, self.machine), self.sessions
        if session_id is not None and users is not None and own is not None:
            self._give(session_id)
            copy_session(self.adapter, session_id, users, own)
        return folders

    def _clear(self) -> None:
        """Move the sessions to the store, keep the CLI's notes on the workspace, and delete all other files."""
        if not self.root.is_dir():
            return
        gone, names = self.root / f".gone-{secrets.token_hex(8)}", [path.name for path in self.root.iterdir()]
        below = [str(folder.source.relative_to(self.root)) for folder in self.folders[:1]]
        for name in below:
            self._store.take(GuardedFolder(self.root, name))
        gone.mkdir(mode=0o700)
        for name in names:
            if name != _STORE:
                (self.root / name).rename(gone / name)  # the name has one part, so no link is followed
        notes = self.adapter.capabilities.notes_of_workspace
        for name in below if notes else ():
            old, new = GuardedFolder(gone, name), GuardedFolder(self.root, name)
            for note in old.find(notes.format(order="*")):
                new.make_closed()
                old.move(note, new)
        shutil.rmtree(gone, ignore_errors=True)  # the rest is removed with the workspace

    def _give(self, session_id: str) -> None:
        own = self.sessions
        if own is not None:
            self._store.give(session_id, GuardedFolder(self.root, str(own.root.relative_to(self.root))))

    def give_session_to_user(self, session_id: str) -> None:
        """Copy a session to the user's own folders, for an agent that runs without a sandbox.

        Raises:
            OSError: The disk refused.
        """
        users, own = user_sessions(self.adapter, self.machine), self.sessions
        if users is not None and own is not None:
            self._give(session_id)
            copy_session(self.adapter, session_id, own, users)


@dataclass(frozen=True, slots=True)
class Homes:
    """The homes of all work orders of this host."""

    root: Path
    """`STATE/homes`."""
    logins: Logins

    def of(self, order_id: str, adapter: Adapter, machine: Machine) -> AgentHome:
        """Return the home of one CLI for a work order or lane; the home's folder may be missing."""
        return AgentHome(self.root / order_id / adapter.name, adapter, machine, self.logins)

    def has(self, order_id: str) -> bool:
        """Return whether a work order or lane has a home."""
        return (self.root / order_id).exists()

    def take_logins_back(self, order_id: str, *, is_over: bool) -> None:
        """Copy a work order's refreshed logins back to the user; if the run `is_over`, delete the home's copies.

        Raises:
            OSError: The disk refused.
        """
        self.logins.take_back(self.root / order_id, is_over=is_over)

    def close(self, order_id: str) -> Path | None:
        """Copy a work order's logins to the user's files; return the home for deletion, `None` if there is none.

        Raises:
            OSError: The disk refused.
        """
        folder = self.root / order_id
        self.logins.close(folder)
        return folder if folder.exists() or folder.is_symlink() else None


def hide_keys_of(adapter: Adapter, machine: Machine) -> None:
    """Mask the keys of a CLI's login files and settings files in all later output."""
    facts = adapter.capabilities
    for name in (*(file.name for file in facts.logins), *(file.name for file in facts.settings)):
        path = locate(adapter, machine, name)
        content = read_if_possible(path)
        hide_of(str(path), keys_in(read_document(name, content) if content is not None else None))
