"""The agent runs that a host keeps: a folder for each, never overwritten, and locks: who lives, and who writes."""

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

import msgspec
from pydantic import Field

from septet.agents.runs.run import Run, RunKey, RunRecord, drop_run, read_run
from septet.contracts.facts import Usage
from septet.contracts.wire import Wire
from septet.errors import InvalidInputError
from septet.system.durable import create_file, read_model, write_atomically
from septet.system.locks import lock, lock_is_held, open_lock, take_lock

RUN_VARIABLE: Final = "SEPTET_RUN"
"""Every process of an agent has its run's mark in this variable, so that leftovers can be found."""
SETUP_FOLDER: Final = "setup"
"""Beside the runs of a workspace: the records of its set-up, which is no agent's run."""
_SAFE_NAME: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}")
_OWNER_ONLY_FOLDER: Final = 0o700
_ARCHIVE: Final = "past.json"
"""The file of runs whose work orders have left a lane: no step reads those runs again. It repeats what the runs'
own folders say; if it is missing or broken, the folders are read."""


class InSession(Wire):
    """The sums of the runs of one session."""

    usage: Usage = Usage()
    prompt_bytes: int = 0
    stream_bytes: int = 0
    """The bytes on disk, from which the length of a session is guessed if its CLI does not report it."""
    model: str = ""
    """The model that the last run requested; empty for the agent's own default."""


class ArchivedRuns(Wire):
    """Runs of work orders that have left a lane."""

    runs: frozenset[str] = frozenset()
    """The names of their folders."""
    serial: int = 0
    """The highest serial number."""
    sessions: dict[str, InSession] = Field(default_factory=dict)

    def of(self, session_id: str | None) -> InSession:
        """Return the sums of a session in these runs."""
        return self.sessions.get(session_id or "", InSession())


def read_archive(folder: Path) -> ArchivedRuns:
    """Return the archive of a folder of runs; an empty one outside of lanes."""
    return read_model(folder / _ARCHIVE, ArchivedRuns) or ArchivedRuns()


def write_archive(folder: Path, past: ArchivedRuns) -> None:
    """Replace the archive; the caller holds the writer's lock."""
    write_atomically(folder / _ARCHIVE, past.model_dump_json().encode())


@dataclass(frozen=True, slots=True)
class Runs:
    """All runs of this host."""

    root: Path
    """`STATE/runs`."""
    runner: Path | None = None
    """The lock of this host's runner, where supervisors are its children."""

    def of(self, order_id: str) -> list[Run]:
        """Return a work order's runs in the order of their starts; those that nobody can read come first."""
        return self._list_except(order_id, frozenset())

    def lately(self, order_id: str) -> list[Run]:
        """Return the runs as `of`, in a lane only those since it was passed on last: thousands may lie before."""
        return self._list_except(order_id, read_archive(self.folder_of(order_id)).runs)

    def at(self, folder: Path) -> Run:
        """Return the run that lies in a folder."""
        return read_run(folder, self.runner)

    def orders(self) -> list[str]:
        """Return the work orders that have runs here."""
        with os.scandir(self.root) as entries:
            return sorted(each.name for each in entries if each.is_dir())

    def is_held(self, order_id: str) -> bool:
        """Return whether a living agent or a writing attempt holds a work order's writer's lock."""
        return lock_is_held(self.lock_of(order_id))

    def next_serial(self, order_id: str, runs: Sequence[Run]) -> int:
        """Return the number for a work order's next run after those of `lately`, with the writer's lock held."""
        serials = (run.record.serial for run in runs if run.record is not None)
        return 1 + max((read_archive(self.folder_of(order_id)).serial, *serials))

    def living(self, order_id: str) -> Run | None:
        """Return the work order's run whose supervisor lives, if there is one."""
        return next((run for run in reversed(self.lately(order_id)) if run.lives()), None)

    def set_aside(self, order_id: str, key: RunKey) -> None:
        """Let the runs of a key count no more: the next attempt begins anew, from the step's checkpoint."""
        for run in self.lately(order_id):
            if run.record is not None and run.record.key == key and not run.set_aside:
                run.leave_aside()

    def lock_writer(self, order_id: str) -> int | None:
        """Take the lock of the workspace's one writer and return its descriptor; `None` when another holds it.

        The holder passes the lock on to the supervisor of the agent that it starts; the lock is free when that
        agent and every process below it are dead, or when a warm agent stands still after its turn.
        """
        self.folder_of(order_id).mkdir(mode=_OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        return take_lock(self.lock_of(order_id))

    def create(self, order_id: str, number: int, record: RunRecord, prompt: bytes) -> tuple[Run, int]:
        """Make a run's folder and return it with the descriptor of its lock; the caller holds the writer's lock.

        Raises:
            InvalidInputError: A name would leave the folder.
            OSError: The disk is full or read-only.
        """
        folder = self._new_folder(order_id, f"{number}-{_check_name(record.step)}")
        try:
            create_file(folder / "prompt.md", prompt)
            create_file(folder / "run.json", msgspec.json.format(msgspec.json.encode(record), indent=2))
            descriptor = open_lock(folder / "lock")
        except OSError:
            drop_run(folder)  # on a full disk there may be many tries
            raise
        lock(descriptor)
        return Run(folder, record, self.runner), descriptor

    def folder_of(self, order_id: str) -> Path:
        """Return where a work order's runs lie.

        Raises:
            InvalidInputError: The id cannot be a folder's name.
        """
        return self.root / _check_name(order_id)

    def lock_of(self, order_id: str) -> Path:
        """Return the file of the writer's lock."""
        return self.folder_of(order_id) / "lock"

    def _list_except(self, order_id: str, excluded: Collection[str]) -> list[Run]:
        folder = self.folder_of(order_id)
        if not folder.is_dir():
            return []
        with os.scandir(folder) as entries:
            runs = [
                self.at(folder / each.name)
                for each in entries
                if each.name not in excluded and each.name != SETUP_FOLDER and each.is_dir()
            ]
        return sorted(runs, key=lambda run: run.record.serial if run.record is not None else 0)

    def _new_folder(self, order_id: str, stem: str) -> Path:
        """Make a folder under a name that none has, nor had one that is remembered."""
        parent = self.folder_of(order_id)
        parent.mkdir(mode=_OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        with os.scandir(parent) as entries:
            used_names = {*(each.name for each in entries), *read_archive(parent).runs}
        names = (f"{stem}-{attempt}" for attempt in count(1))
        folder = parent / next(name for name in names if name not in used_names)
        folder.mkdir(mode=_OWNER_ONLY_FOLDER)
        return folder


def _check_name(name: str) -> str:
    if not _SAFE_NAME.fullmatch(name):
        raise InvalidInputError(
            f"`{name[:80]}` cannot be the name of a folder: use up to 64 letters, digits, `.`, `_` and `-`."
        )
    return name
