"""The agent runs of a host: a folder and a lock for each run, and the writer's lock of each workspace."""

import os
import re
import time
from collections.abc import Collection, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Final, TypeVar, cast

import msgspec
from pydantic import Field

from septet.agents.outcomes.outcome import ExitRecord
from septet.agents.runs.records import RunKey, RunRecord
from septet.contracts.facts import Usage
from septet.contracts.wire import Wire
from septet.errors import InvalidInputError
from septet.system.durable import (
    create_file,
    lock,
    lock_is_held,
    open_lock,
    read_model,
    take_lock,
    write_atomically,
)

RUN_VARIABLE: Final = "SEPTET_RUN"
"""The environment variable that names the run in all processes of the run; it identifies leftover processes."""

SETUP_FOLDER: Final = "setup"
"""The folder, next to a workspace's runs, with the records of the workspace's set-up commands."""

_SAFE_NAME: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}")
_OWNER_ONLY_FOLDER: Final = 0o700
R = TypeVar("R")
_SET_ASIDE: Final = "set-aside"
_ARCHIVE: Final = "past.json"
_KEPT_FILES: Final = 1024
"""The number of cached records: a step reads the records of its work order many times."""


class InSession(Wire):
    """Sums over all runs of one session: the usage, and the bytes of prompts and streams."""

    usage: Usage = Usage()
    prompt_bytes: int = 0
    stream_bytes: int = 0
    """The bytes of the runs' streams, from which Septet estimates the session's length if the CLI reports none."""
    model: str = ""
    """The model that the last run requested; empty for the agent's own default."""


class ArchivedRuns(Wire):
    """The ended runs of work orders that have left a lane: folder names, and each session's usage and bytes."""

    runs: frozenset[str] = frozenset()
    """The names of the runs' folders."""
    serial: int = 0
    sessions: dict[str, InSession] = Field(default_factory=dict)

    def of(self, session_id: str | None) -> InSession:
        """Return the usage and bytes of a session's archived runs; zeros for an unknown session."""
        return self.sessions.get(session_id or "", InSession())


def read_archive(folder: Path) -> ArchivedRuns:
    """Return the archive of a folder of runs; an empty archive if the file is missing or broken."""
    return read_model(folder / _ARCHIVE, ArchivedRuns) or ArchivedRuns()


def write_archive(folder: Path, past: ArchivedRuns) -> None:
    """Replace the archive of a folder of runs; the caller holds the writer's lock."""
    write_atomically(folder / _ARCHIVE, past.model_dump_json().encode())


@dataclass(frozen=True, slots=True)
class Run:
    """One agent run: its folder, and the record of its start."""

    folder: Path
    record: RunRecord | None = field(repr=False)
    """The record of the start; `None` if `run.json` cannot be read, in which case no attempt adopts the run."""
    runner: Path | None = None
    """The lock of this host's runner, if supervisors are children of the runner."""

    name: str = field(init=False, compare=False)
    """The run's folder, relative to the state directory."""

    def __post_init__(self) -> None:
        """Compute the name once, because it is read often."""
        object.__setattr__(self, "name", "/".join(self.folder.parts[-3:]))

    @property
    def checks(self) -> Path:
        """The folder with the records of checks that ran on this run's work."""
        return self.folder / "checks"

    @property
    def stdout(self) -> Path:
        """The file with the agent's stream."""
        return self.folder / "stdout.jsonl"

    @property
    def stderr(self) -> Path:
        """The file with the agent's standard error."""
        return self.folder / "stderr.log"

    @property
    def has_started(self) -> bool:
        """Whether a supervisor has taken over the run."""
        return self.stdout.exists()

    @property
    def set_aside(self) -> bool:
        """Whether a person reset the activity after the run; the run then no longer counts."""
        return (self.folder / _SET_ASIDE).exists()

    def lives(self) -> bool:
        """Return whether the run's supervisor is alive."""
        return lock_is_held(self.folder / "lock")

    def exit(self) -> ExitRecord | None:
        """Return the record of the run's end; `None` while the run lives, or if its supervisor was killed."""
        try:
            return _read_whole(f"{self.folder}/exit.json", ExitRecord)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    def await_exit(self, within_seconds: float) -> ExitRecord | None:
        """Return the record of the run's end; wait for it while the supervisor lives, up to `within_seconds`."""
        bound = time.monotonic() + within_seconds
        while self.exit() is None and self.lives() and time.monotonic() < bound:
            time.sleep(0.02)
        return self.exit()

    def drop_unstarted(self) -> None:
        """Delete the folder if no supervisor has taken over the run."""
        if not (self.lives() or self.has_started):
            with suppress(OSError):
                drop_run(self.folder)

    def size_of(self, name: str) -> int:
        """Return the size, in bytes, of one of the run's files; 0 for a missing file."""
        path = self.folder / name
        return path.stat().st_size if path.exists() else 0

    def put(self, name: str, content: bytes) -> None:
        """Write a file into the run's folder, completely or not at all."""
        write_atomically(self.folder / name, content)


@dataclass(frozen=True, slots=True)
class Runs:
    """All agent runs of this host."""

    root: Path
    """`STATE/runs`."""
    runner: Path | None = None
    """The lock of this host's runner, if supervisors are children of the runner."""

    def of(self, order_id: str) -> list[Run]:
        """Return a work order's runs in the order of their starts; runs with unreadable records come first."""
        return self._list_except(order_id, frozenset())

    def lately(self, order_id: str) -> list[Run]:
        """Return a work order's runs as `of` does, but without a lane's archived runs, which may be thousands."""
        return self._list_except(order_id, read_archive(self.folder_of(order_id)).runs)

    def at(self, folder: Path) -> Run:
        """Return the run in a folder, with its record."""
        return Run(folder, _read_record(folder), self.runner)

    def orders(self) -> list[str]:
        """Return the ids of the work orders and lanes that have runs on this host."""
        with os.scandir(self.root) as entries:
            return sorted(each.name for each in entries if each.is_dir())

    def is_held(self, order_id: str) -> bool:
        """Return whether an agent or attempt holds a work order's writer's lock."""
        return lock_is_held(self.lock_of(order_id))

    def next_serial(self, order_id: str, runs: Sequence[Run]) -> int:
        """Return the next run's number; `runs` is the result of `lately`. The caller holds the writer's lock."""
        serials = (run.record.serial for run in runs if run.record is not None)
        return 1 + max((read_archive(self.folder_of(order_id)).serial, *serials))

    def living(self, order_id: str) -> Run | None:
        """Return a work order's run whose supervisor is alive; `None` if there is none."""
        return next((run for run in reversed(self.lately(order_id)) if run.lives()), None)

    def set_aside(self, order_id: str, key: RunKey) -> None:
        """Record that the runs of an activity no longer count, because a person has reset the activity."""
        for run in self.lately(order_id):
            if run.record is not None and run.record.key == key and not run.set_aside:
                run.put(_SET_ASIDE, b"")

    def lock_writer(self, order_id: str) -> int | None:
        """Take a workspace's writer's lock and return its descriptor; `None` if the lock is held.

        An agent's supervisor gets the lock from the attempt. The lock is free again when all processes of the
        agent are dead, or when a warm agent is stopped after its turn.
        """
        self.folder_of(order_id).mkdir(mode=_OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        return take_lock(self.lock_of(order_id))

    def create(self, order_id: str, number: int, record: RunRecord, prompt: bytes) -> tuple[Run, int]:
        """Make a run's folder; return the run, and the descriptor of the run's lock.

        Raises:
            InvalidInputError: The id or the step cannot be a folder's name.
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
        """Return the folder of a work order's runs.

        Raises:
            InvalidInputError: The id cannot be a folder's name.
        """
        return self.root / _check_name(order_id)

    def lock_of(self, order_id: str) -> Path:
        """Return the path of a work order's writer's lock."""
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
        """Make a folder for a run, with a name that no other run has, not even an archived run."""
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


def drop_run(folder: Path) -> None:
    """Delete the folder of a run that was not started."""
    for name in ("prompt.md", "run.json", "lock"):
        (folder / name).unlink(missing_ok=True)
    folder.rmdir()


def _read_record(folder: Path) -> RunRecord | None:
    try:
        return _read_whole(f"{folder}/run.json", RunRecord)
    except (OSError, msgspec.MsgspecError):
        return None


def _read_whole(path: str, kind: type[R]) -> R:
    """Read a record from its file, or from the cache if the file has not changed."""
    facts = os.stat(path)  # noqa: PTH116 -- of hundreds, in text
    return cast("R", _read_once(path, cast("Hashable", kind), (facts.st_ino, facts.st_mtime_ns, facts.st_size)))


@lru_cache(maxsize=_KEPT_FILES)
def _read_once(path: str, kind: Hashable, stamp: tuple[int, ...]) -> object:
    del stamp  # a file that has changed has another stamp
    return msgspec.json.decode(Path(path).read_bytes(), type=cast("type[object]", kind))
